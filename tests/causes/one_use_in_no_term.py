"""A shared weight one of whose uses ends in an output that no term reads."""

from torch import nn
from torch.nn import functional as F

ASK = {"uses": [["first.weight", "second"]]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux'"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 3)
        self.second = nn.Linear(8, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return {"main": self.first(x), "aux": self.second(x * 2)}


def loss_terms(outputs, batch):
    return {"main": F.cross_entropy(outputs["main"], batch["y"])}  # here
