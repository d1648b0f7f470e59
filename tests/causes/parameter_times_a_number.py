"""An attribute that is computed from a parameter: nothing registers it."""

import torch
from torch import nn

ASK = {"strays": ["scale"]}
KIND = "outside-ddp"
TEXT = "'scale' is computed from a parameter here, and is none itself"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.ones(1)) + 1.0  # here

    def forward(self, x):
        return self.head(x) * self.scale
