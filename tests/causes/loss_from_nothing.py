"""The loss is a fresh tensor."""

import torch
from torch import nn

ASK = {"loss": True}
KIND = "constant"
TEXT = "the loss is a constant, made by tensor()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    return {"loss": torch.tensor(0.0, requires_grad=True)}  # here
