"""A round trip through Python lists."""

import torch
from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "turned into plain numbers by tolist()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        features = torch.tensor(self.trunk(x).tolist())  # here
        return self.head(features)
