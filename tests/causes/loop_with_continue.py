"""One layer of a list is skipped, the others run."""

import torch
from torch import nn

ASK = {"parameters": {"layers.1.weight": "none"}}
KIND = "module-not-called"
TEXT = "'layers.1' is not called: `i == 1` skips it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i == 1:  # here
                continue
            x = torch.relu(layer(x))
        return self.head(x)
