"""A guard against NaN that puts a constant in the total's place."""

import torch
from torch import nn

ASK = {"parameters": {"head.weight": "none"}}
KIND = "term-not-in-total"
TEXT = "term 'ce' is not in the total: the total is a constant, made by zeros_like()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def total_loss(terms):
    total = terms["ce"]
    if total > 0:
        total = torch.zeros_like(total)  # here
    return total
