"""Two factors that are both zero: the one used first."""

import torch
from torch import nn

ASK = {"parameters": {"down": "zero", "up": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "'down' and 'up' are both all zero, and each one's gradient is a product with the other"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Parameter(torch.zeros(8, 2))  # here
        self.up = nn.Parameter(torch.zeros(2, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x + x @ self.down @ self.up)
