"""The line that puts the rank to use, not those that read or print it."""

import torch.distributed as dist
from torch import nn

ASK = {"mismatched": ["head.weight"]}
KIND = "rank-dependent"
TEXT = "the model is built differently on each rank: its size depends on the rank"


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(8, width)

    def forward(self, x):
        return self.head(x)


def make_model():
    rank = dist.get_rank() if dist.is_initialized() else 0
    print("building on rank", rank)
    width = 3 + rank  # here
    return Net(width)
