"""A backbone that is frozen when DDP is built, and unfrozen where the optimizer is made."""

from torch import nn
from torch.optim import SGD


class Net(nn.Module):
    def __init__(self, frozen: bool = True):
        super().__init__()
        self.backbone, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
        self.backbone.requires_grad_(not frozen)

    def forward(self, x):
        return self.head(self.backbone(x).relu())


def optimizer(model):
    model.backbone.requires_grad_(True)  # here
    return SGD(model.parameters(), lr=0.01)
