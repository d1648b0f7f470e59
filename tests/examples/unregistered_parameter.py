"""Layers in a plain list."""

from torch import nn


class Net(nn.Module):
    def __init__(self, registered: bool = False):
        super().__init__()
        layers = [nn.Linear(8, 8) for _ in range(2)]
        self.layers = nn.ModuleList(layers) if registered else layers
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)
