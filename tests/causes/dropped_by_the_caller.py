"""The call whose second result is dropped, not the layer that made it."""

import torch
from torch import nn

ASK = {"parameters": {"encoder.pool.weight": "none"}}
KIND = "dead-end"
TEXT = "the result of this call is computed and then dropped"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.pool = nn.Linear(8, 8)

    def forward(self, x):
        h = self.trunk(x)
        return h, torch.tanh(self.pool(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        tokens, _ = self.encoder(x)  # here
        return self.head(tokens)
