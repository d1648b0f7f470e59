"""A head that is drawn anew after the wrap, in the optimizer's factory."""

import torch
from torch import nn

ASK = {"written": ["head.weight"]}
KIND = "written"
TEXT = "each rank writes values of its own here, after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def make_optimizer(model):
    model.head.reset_parameters()  # here
    return torch.optim.SGD(model.parameters(), lr=0.1)
