"""A part that is replaced after the wrap: the assignment."""

from torch import nn
from torch.nn import functional as F

ASK = {"changes": ["head.weight"]}
KIND = "changed"
TEXT = "'head' is assigned anew after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def train_step(model, batch, optimizer):
    F.cross_entropy(model(batch["x"]), batch["y"]).backward()
    model.module.head = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3))  # here
