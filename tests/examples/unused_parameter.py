"""A parameter that is built, and read by nothing."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, scaled: bool = False):
        super().__init__()
        self.head, self.scale, self.scaled = nn.Linear(8, 3), nn.Parameter(torch.ones(3)), scaled

    def forward(self, x):
        logits = self.head(x)
        return logits * self.scale if self.scaled else logits
