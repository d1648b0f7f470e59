"""A fresh leaf of the terms' numbers: backward() runs, and trains nothing."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"terms": ["ce", "norm"], "parameters": {"head.weight": "none"}}
KIND = "term-not-in-total"
TEXT = "term 'ce' is cut by tensor() before it is added"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    return {"ce": F.cross_entropy(outputs, batch["y"]), "norm": outputs.norm()}


def total_loss(terms):
    return torch.tensor([terms["ce"], terms["norm"]], requires_grad=True).sum()  # here
