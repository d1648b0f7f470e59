"""A parameter of the loss: the line that calls the loss."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "it belongs to no part of the wrapped model"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


class Margin(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, logits, labels):
        return F.cross_entropy(logits * self.temperature, labels)


CRITERION = Margin()


def loss_terms(outputs, batch):
    return {"margin": CRITERION(outputs, batch["y"])}  # here
