"""Each of two tied weights is deep-copied on its own."""

import copy

from torch import nn

ASK = {"ties": [["first.weight", "second.weight"]]}
KIND = "broken-tie"
TEXT = "each one is a deep copy of its own"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def make_model():
    model = Net()
    for name in ("first", "second"):
        setattr(model, name, copy.deepcopy(getattr(model, name)))  # here
    return model
