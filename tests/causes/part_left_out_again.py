"""A token that is joined and sliced off before anything mixed it in."""

import torch
from torch import nn

ASK = {"parameters": {"token": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "indexing leaves its part out"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 8))
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = self.trunk(torch.cat([self.token, x]))
        return self.head(h[1:])  # here
