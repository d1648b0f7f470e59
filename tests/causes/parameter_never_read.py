"""A parameter of a called module that nothing reads."""

import torch
from torch import nn

ASK = {"parameters": {"scale": "none"}}
KIND = "not-used-by-module"
TEXT = "nothing reads the parameter"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.ones(8))  # here

    def forward(self, x):
        return self.head(x)
