"""A parameter that is registered as a buffer, by keywords."""

import torch
from torch import nn

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "'queries' is a buffer, and no buffer is one of parameters(), whatever it is made of"


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(8))
        self.register_buffer("queries", persistent=False, tensor=nn.Parameter(torch.randn(8)))  # here

    def forward(self, x):
        return x * self.scale + self.queries


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.decoder(x))
