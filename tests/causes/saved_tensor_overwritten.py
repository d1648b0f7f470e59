"""The operation that saved the tensor, not the one that wrote into it."""

import torch
from torch import nn

ASK = {"inplace": True}
KIND = "modified-inplace"
TEXT = "matmul() saves 'queue' for backward, and it is written into before backward"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.register_buffer("queue", torch.ones(8, 8))

    def forward(self, x):
        h = self.trunk(x) @ self.queue.detach()  # here
        self.queue[0] = x[0]
        return self.head(h)
