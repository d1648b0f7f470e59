"""A hard gate by comparison."""

import torch
from torch import nn

ASK = {"parameters": {"gate.weight": "none"}}
KIND = "severed"
TEXT = "used only through a comparison, which has no gradient"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        keep = torch.sigmoid(self.gate(x)) > 0.5  # here
        return self.head(x * keep)
