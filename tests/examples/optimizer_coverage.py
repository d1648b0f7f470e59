"""The head is in no group of the optimizer."""

from torch import nn
from torch.optim import SGD


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.trunk(x).relu())


def optimizer(model, parts=("trunk",)):
    return SGD([{"params": getattr(model, part).parameters()} for part in parts], lr=0.01)
