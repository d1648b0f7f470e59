"""The read of a parameter is switched off."""

import torch
from torch import nn

ASK = {"parameters": {"position": "none"}}
KIND = "not-used-by-module"
TEXT = "nothing reads the parameter: `self.use_position` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.use_position = False
        self.position = nn.Parameter(torch.zeros(8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        if self.use_position:  # here
            x = x + self.position
        return self.head(x)
