"""The -inf of a mask is meant; the softmax over nothing else is the fault."""

import torch
from torch import nn

ASK = {"loss": True}
KIND = "nonfinite"
TEXT = "softmax() gives NaN here, of finite inputs"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        scores = (x @ x.t()).masked_fill(torch.ones(len(x), len(x)).triu() > 0, float("-inf"))
        weights = scores.softmax(-1)  # here
        return self.head(weights @ x)
