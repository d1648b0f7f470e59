"""Data that went into a view in place is still followed."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        rows = torch.zeros(len(x), 8)
        for row, features in zip(rows, self.trunk(x), strict=True):
            row.copy_(features.detach())  # here
        return self.head(rows)
