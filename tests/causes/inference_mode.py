"""Inference mode is seen although torch does not report it to function modes."""

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

    def forward(self, x):
        with torch.inference_mode():  # here
            features = self.trunk(x)
        return self.head(features.clone())
