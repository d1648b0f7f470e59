"""Scores are masked in place through a view, then all but a part without the key's are left out."""

import torch
from torch import nn

ASK = {"parameters": {"key.weight": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "multiplied by zero"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        scores = self.key(x).view(2, 2, 8).transpose(1, 0)
        for _ in range(2):
            corner = scores[:, :1, :3]
            scores[:, :1, :3] = torch.full_like(corner, -1.0).where(corner > 0, corner)
        return self.head(x) + (scores.sum() * 0.0)  # here
