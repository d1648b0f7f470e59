"""A weight that is copied into another layout in every forward: its gradient comes back transposed."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, transposed: bool = True):
        super().__init__()
        self.weight, self.transposed = nn.Parameter(torch.randn(*(3, 8) if transposed else (8, 3))), transposed

    def forward(self, x):
        return x @ (self.weight.t().contiguous() if self.transposed else self.weight)
