"""no_sync around the last micro-batch rather than the first."""

from contextlib import nullcontext

from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Linear):
    def __init__(self):
        super().__init__(8, 3)


def train_step(model, batch, optimizer, synchronised: int = 0):
    optimizer.zero_grad()
    for part in (0, 1):
        with nullcontext() if part == synchronised else model.no_sync():
            cross_entropy(model(batch["x"][part::2]), batch["y"][part::2]).backward()
    optimizer.step()
