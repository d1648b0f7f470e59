"""The first operation whose finite inputs give inf."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"head.weight": "nonfinite"}, "terms": ["nll"], "loss": True}
KIND = "nonfinite"
TEXT = "log() gives inf here, of finite inputs"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return torch.relu(self.head(x) - 100)


def loss_terms(outputs, batch):
    logarithm = torch.log(outputs)  # here
    return {"nll": F.nll_loss(logarithm, batch["y"])}
