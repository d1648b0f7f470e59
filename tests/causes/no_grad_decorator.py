"""A decorated method."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "gradients are switched off here, around linear()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    @torch.no_grad()  # here
    def encode(self, x):
        return self.trunk(x)

    def forward(self, x):
        return self.head(self.encode(x))
