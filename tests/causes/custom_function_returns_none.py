"""An autograd.Function that hands back no gradient."""

import torch
from torch import nn

ASK = {"parameters": {"scale": "none"}}
KIND = "opaque"
TEXT = "autograd function Scaled returns no gradient for it"


class Scaled(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, scale):
        return torch.round(x / scale) * scale

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.1))
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = Scaled.apply(self.trunk(x), self.scale)  # here
        return self.head(h)
