"""Adapters put into the ModuleList, while a plain list still holds the layers inside them: the line that uses those."""

import torch
from torch import nn

ASK = {"parameters": {"layers.0.down": "none"}}
KIND = "not-used-by-module"
TEXT = "'layers.0' is not called: 'layers.0.base' inside it is used directly"


class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.down = base, nn.Parameter(torch.randn(2, 8))

    def forward(self, x):
        return self.base(x) + (x @ self.down.T) @ self.down


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList([nn.Linear(8, 8)]), nn.Linear(8, 3)
        self.path = list(self.layers)
        self.layers[0] = Adapter(self.layers[0])

    def forward(self, x):
        for layer in self.path:
            x = layer(x).relu()  # here
        return self.head(x)
