"""The with line is to blame, not the layers inside."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.0.weight": "none"}}
KIND = "severed"
TEXT = "gradients are switched off here, around linear()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        with torch.no_grad():  # here
            features = self.trunk(x)
            features = features * 2
        return self.head(features)
