"""Detached first, and then out of torch."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "cut by detach(), and then leaves torch through tolist()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        rows = self.trunk(x).detach()  # here
        rows = rows.tolist()
        return self.head(torch.tensor(rows))
