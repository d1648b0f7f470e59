"""One weight, two uses: what the second head computes with it is detached."""

from torch import nn


class Net(nn.Module):
    def __init__(self, detach: bool = True):
        super().__init__()
        self.trunk, self.head, self.second, self.detach = nn.Linear(8, 8), nn.Linear(8, 3), nn.Linear(8, 3), detach
        self.second.weight = self.head.weight

    def forward(self, x):
        hidden = self.trunk(x)
        again = self.second(hidden.relu())
        return self.head(hidden) + (again.detach() + self.second.bias if self.detach else again)
