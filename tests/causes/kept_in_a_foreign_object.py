"""A parameter in an object that is no module."""

import torch
from torch import nn

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "'holder' is kept where nn.Module does not register it"


class Holder:
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.holder = Holder()  # here

    def forward(self, x):
        return self.head(x @ self.holder.weight)
