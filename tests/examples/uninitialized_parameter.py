"""A lazy layer that has seen no data when DDP is built."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dummy: bool = False):
        super().__init__()
        self.trunk, self.head = nn.LazyLinear(8), nn.Linear(8, 3)
        if dummy:
            self(torch.zeros(1, 8))

    def forward(self, x):
        return self.head(self.trunk(x))
