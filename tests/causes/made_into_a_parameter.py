"""nn.Parameter() around computed values."""

from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "cut by nn.Parameter()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = nn.Parameter(self.trunk(x))  # here
        return self.head(h)
