"""The mean over the labelled samples of a rank that has none."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Linear):
    def __init__(self):
        super().__init__(8, 3)


def batch(rank):
    return {"input": torch.randn(8, 8), "y": torch.randint(3, (8,)), "mask": torch.full((8,), rank == 0)}


def losses(outputs, batch, fewest: int = 0):
    each = cross_entropy(outputs, batch["y"], reduction="none")
    return (each * batch["mask"]).sum() / max(int(batch["mask"].sum()), fewest) if fewest else each[batch["mask"]].mean()
