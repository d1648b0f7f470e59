"""Each rank divides by the number of its own labelled samples."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Linear):
    def __init__(self):
        super().__init__(8, 3)


def batch(rank, labelled=(8, 2)):
    return {"input": torch.randn(8, 8), "y": torch.randint(3, (8,)), "mask": torch.arange(8) < labelled[rank]}


def losses(outputs, batch):
    each = cross_entropy(outputs, batch["y"], reduction="none")
    return (each * batch["mask"]).sum() / batch["mask"].sum()
