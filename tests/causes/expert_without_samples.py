"""An expert that the router never picks."""

import torch
from torch import nn

ASK = {"parameters": {"experts.1.weight": "none"}}
KIND = "module-not-called"
TEXT = "'experts.1' is not called: `picked.any()` does not hold for it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        chosen = torch.zeros(len(x), dtype=torch.long)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            picked = chosen == i
            if picked.any():  # here
                y[picked] = expert(x[picked])
        return self.head(y)
