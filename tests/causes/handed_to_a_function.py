"""A function gets the module and returns before it calls it."""

import torch
from torch import nn

ASK = {"parameters": {"prompt.weight": "none"}}
KIND = "module-not-called"
TEXT = "'prompt' is not called: `return x` comes first"


def with_prompt(x, embed, ids):
    if len(ids) == 0:
        return x  # here
    return x + embed(ids).mean(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Embedding(5, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(with_prompt(x, self.prompt, torch.zeros(0, dtype=torch.long)))
