"""Each rank counts its samples class by class; one that lacks the last class leaves its all_reduce out."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Linear):
    def __init__(self):
        super().__init__(8, 3)


def batch(rank):
    return {"x": torch.randn(8, 8), "y": torch.arange(8) % (3 - rank)}


def losses(outputs, batch, always: bool = False):
    for label in range(3) if always else batch["y"].unique().tolist():
        dist.all_reduce((batch["y"] == label).sum())
    return cross_entropy(outputs, batch["y"])
