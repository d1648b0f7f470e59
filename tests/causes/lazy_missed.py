"""The dummy forward does not visit a lazy branch."""

import torch
from torch import nn

ASK = {"uninitialized": ["edge.weight"]}
KIND = "uninitialized"
TEXT = "the dummy forward does not reach 'edge'"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.node = nn.LazyLinear(8)
        self.edge = nn.LazyLinear(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, edges=None):
        h = self.node(x)
        if edges is not None:
            h = h + self.edge(edges)
        return self.head(h)


def make_model():
    model = Net()
    model(torch.randn(2, 8))  # here
    return model
