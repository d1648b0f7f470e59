"""Two factors, one of them zero at the start, behind a scale that came out as 0: the scale."""

import torch
from torch import nn

ASK = {"parameters": {"down": "zero", "up": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "multiplied by zero"


class Net(nn.Module):
    def __init__(self, rank: int = 8, alpha: int = 4):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.down, self.up = nn.Parameter(torch.randn(8, rank)), nn.Parameter(torch.zeros(rank, 3))
        self.scale = alpha // rank

    def forward(self, x):
        return self.head(x) + self.scale * (x @ self.down @ self.up)  # here
