"""Weight normalisation put on after the wrap: the call, not the forwards that set the weight anew."""

import torch
from torch import nn

ASK = {"changes": ["head.weight"]}
KIND = "changed"
TEXT = "'weight' is assigned anew after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def make_optimizer(model):
    nn.utils.weight_norm(model.head)  # here
    return torch.optim.SGD(model.parameters(), lr=0.1)
