"""``.data`` cuts the graph as detach() does."""

from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "cut by .data"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        features = self.trunk(x).data  # here
        return self.head(features)
