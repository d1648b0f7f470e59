"""The loss is NaN because an earlier step's gradients were."""

import torch
from torch import nn

ASK = {"loss": True}
KIND = "nonfinite"
TEXT = "the derivative of sqrt() is not finite here"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    distance = outputs - outputs.detach()
    return {"distance": torch.sqrt((distance**2).sum(-1)).mean()}  # here
