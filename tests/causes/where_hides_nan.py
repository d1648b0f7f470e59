"""torch.where hides NaN from the loss, not from backward."""

import torch
from torch import nn

ASK = {"parameters": {"head.weight": "nonfinite"}}
KIND = "nonfinite"
TEXT = "where() hides values that are not finite; backward still goes through them"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    root = torch.sqrt(outputs)
    return {"root": torch.where(outputs > 0, root, outputs).mean()}  # here
