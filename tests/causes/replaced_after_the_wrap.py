"""The optimizer's factory puts in another head."""

import torch
from torch import nn

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "it is created after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 7)

    def forward(self, x):
        return self.head(x)


def make_optimizer(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.head = nn.Linear(8, 3)  # here
    return optimizer
