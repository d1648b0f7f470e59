"""Layers that are pairs in a ModuleList, of which a helper's comprehension keeps none: its condition."""

from torch import nn

ASK = {"parameters": {"layers.0.0.weight": "none"}}
KIND = "module-not-called"
TEXT = "'layers' is not called: `i / 10 > rate` leaves it out"


def kept(layers, rate):
    return [layer for i, layer in enumerate(layers) if i / 10 > rate]  # here


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]) for _ in range(2)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for a, b in kept(self.layers, 0.5):
            x = x + b(a(x).relu())
        return self.head(x)
