"""A reentrant checkpoint whose inputs need no gradient."""

from torch import nn
from torch.utils.checkpoint import checkpoint

ASK = {"parameters": {"block.weight": "none"}}
KIND = "checkpoint"
TEXT = "a reentrant checkpoint whose tensor inputs need no gradient records nothing inside"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = checkpoint(self.block, x, use_reentrant=True)  # here
        return self.head(h)
