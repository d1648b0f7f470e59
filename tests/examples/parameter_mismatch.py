"""As many classes as this rank's own data has."""

import torch.distributed as dist
from torch import nn

CLASSES = {0: ["cat", "dog", "cow"], 1: ["cat", "dog", "cow", "hen"]}


class Net(nn.Module):
    def __init__(self, own: bool = True):
        super().__init__()
        rank = dist.get_rank()
        self.head = nn.Linear(8, len(CLASSES[rank if own else 0]))

    def forward(self, x):
        return self.head(x)
