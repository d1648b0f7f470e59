"""The model detaches its features."""

from torch import nn

ASK = {"parameters": {"trunk.weight": "none"}}
KIND = "severed"
TEXT = "cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        features = self.trunk(x).detach()  # here
        return self.head(features)
