"""Without a dummy forward: where the lazy layer is made."""

from torch import nn

ASK = {"uninitialized": ["trunk.weight"]}
KIND = "uninitialized"
TEXT = "'trunk' is lazy, and no forward was run before the wrap"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.LazyLinear(8)  # here
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.trunk(x))
