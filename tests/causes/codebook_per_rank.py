"""A moving average in a buffer that the forward reads; the counter beside it is read by none."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"buffers": ["seen", "codebook"]}
KIND = "diverging-state"
TEXT = "each rank writes values of its own to 'codebook' here, and computes its loss with them"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.register_buffer("codebook", torch.randn(5, 8))
        self.register_buffer("seen", torch.zeros(5))

    def forward(self, x):
        index = torch.cdist(x, self.codebook).argmin(1)
        self.seen += F.one_hot(index, 5).sum(0)
        self.codebook[index] = 0.9 * self.codebook[index] + 0.1 * x  # here
        return self.head(F.embedding(index, self.codebook))
