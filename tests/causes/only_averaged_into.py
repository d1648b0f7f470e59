"""A copy that is only ever updated in place."""

import copy

import torch
from torch import nn

ASK = {"parameters": {"average.weight": "none"}}
KIND = "module-not-called"
TEXT = "'average' is not called: nothing in this scenario's code calls it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.average = copy.deepcopy(self.trunk)  # here

    @torch.no_grad()
    def update(self):
        for old, new in zip(self.average.parameters(), self.trunk.parameters(), strict=True):
            old.mul_(0.9).add_(new, alpha=0.1)

    def forward(self, x):
        self.update()
        return self.head(self.trunk(x))
