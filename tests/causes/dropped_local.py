"""A result that nothing reads."""

import torch
from torch import nn

ASK = {"parameters": {"proj.weight": "none"}}
KIND = "dead-end"
TEXT = "the result of relu() is computed and then dropped"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        unread = torch.relu(self.proj(x))  # here
        del unread
        return self.head(x)
