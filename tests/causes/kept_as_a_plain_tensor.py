"""A tensor with requires_grad=True in an attribute, which the optimizer holds; the batch's own gradient is none of it."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "'log_vars' holds a plain tensor, which requires_grad=True does not make one of parameters()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.log_vars = [torch.zeros(1, requires_grad=True), torch.ones(3)]  # here

    def forward(self, x):
        x.requires_grad_(True)
        self.last = x
        return self.head(x) * self.log_vars[0].exp() * self.log_vars[1]


def make_optimizer(model):
    net = getattr(model, "module", model)
    return torch.optim.SGD([*net.parameters(), net.log_vars[0]], lr=0.1)


def loss_terms(outputs, batch):
    return {"ce": F.cross_entropy(outputs, batch["y"])}
