"""Both factors of a low-rank product start at zero."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, scale: float = 0.0):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.down, self.up = nn.Parameter(torch.randn(8, 2) * scale), nn.Parameter(torch.zeros(2, 3))

    def forward(self, x):
        return self.head(x) + x @ self.down @ self.up
