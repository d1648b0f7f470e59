"""An activation that is off everywhere."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.weight": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "no gradient comes back through relu()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = torch.relu(self.trunk(x) - 100)  # here
        return self.head(x + h)
