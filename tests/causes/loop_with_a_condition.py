"""A layer is called under a condition that does not hold for it."""

import torch
from torch import nn

ASK = {"parameters": {"layers.1.weight": "none"}}
KIND = "module-not-called"
TEXT = "'layers.1' is not called: `kept` does not hold for it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = [True, False, True]
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for layer, kept in zip(self.layers, self.kept, strict=True):
            if kept:  # here
                x = torch.relu(layer(x))
        return self.head(x)
