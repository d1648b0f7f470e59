"""A second head whose output no loss term reads."""

from torch import nn


class Net(nn.Module):
    def __init__(self, second: bool = True):
        super().__init__()
        self.trunk, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
        self.second = nn.Linear(8, 3) if second else None

    def forward(self, x):
        hidden = self.trunk(x)
        return {"classes": self.head(hidden)} | ({"second": self.second(hidden)} if self.second else {})
