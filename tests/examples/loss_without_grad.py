"""The loss is computed from detached outputs."""

from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Linear):
    def __init__(self):
        super().__init__(8, 3)


def loss(outputs, labels, detach: bool):
    return cross_entropy(outputs.detach() if detach else outputs, labels)
