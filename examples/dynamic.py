"""A branch on the batch: which part of the model runs depends on the mean of what it is fed."""

import torch
from torch import nn


class DynamicNet(nn.Module):
    """Bright batches go through one branch, dark ones through the other; neither sees all of them."""

    def __init__(self, features: int = 12, width: int = 32):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(features, width), nn.GELU())
        self.bright = nn.Linear(width, width)
        self.dark = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.stem(x)
        if x.mean() > 0:
            hidden = self.bright(hidden)
        else:
            hidden = self.dark(hidden)
        return self.head(hidden).squeeze(-1)
