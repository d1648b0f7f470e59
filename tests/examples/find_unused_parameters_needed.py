"""A layer that is dropped at random, on all ranks alike, while DDP waits for its gradient."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
        self.draws = torch.Generator().manual_seed(1)

    def forward(self, x):
        kept = torch.rand((), generator=self.draws) < 0.5
        return self.head(self.layer(x) if kept else x)
