"""A square of one's own, whose backward has forgotten the factor 2."""

import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x ** 2

    @staticmethod
    def backward(ctx, grad):
        return ctx.factor * ctx.saved_tensors[0] * grad, None


class Net(nn.Module):
    def __init__(self, factor: float = 1.0):
        super().__init__()
        self.trunk, self.head, self.factor = nn.Linear(8, 8), nn.Linear(8, 3), factor

    def forward(self, x):
        return self.head(Square.apply(self.trunk(x), self.factor))
