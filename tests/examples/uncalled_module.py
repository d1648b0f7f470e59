"""A layer that is built for an option, and called with it only."""

from torch import nn


class Net(nn.Module):
    def __init__(self, attend: bool = False):
        super().__init__()
        self.attention, self.head, self.attend = nn.Linear(8, 8), nn.Linear(8, 3), attend

    def forward(self, x):
        return self.head(self.attention(x) if self.attend else x)
