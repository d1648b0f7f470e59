"""A loop that does not come to the last layers."""

import torch
from torch import nn

ASK = {"parameters": {"layers.2.weight": "none"}}
KIND = "module-not-called"
TEXT = "'layers.2' is not called: the loop does not come to it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = 2
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for layer in self.layers[: self.depth]:  # here
            x = torch.relu(layer(x))
        return self.head(x)
