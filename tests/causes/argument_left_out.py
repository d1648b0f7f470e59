"""This instance's call leaves out the condition that the other's passes."""

from torch import nn

ASK = {"parameters": {"second.condition.weight": "none"}}
KIND = "module-not-called"
TEXT = (
    "'second.condition' is not called: 'condition' is not passed, so `self.condition "
    "is not None and condition is not None` does not hold"
)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 8)
        self.condition = nn.Linear(8, 8)

    def forward(self, x, condition=None):
        h = self.main(x)
        if self.condition is not None and condition is not None:
            h = h + self.condition(condition)
        return h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = self.first(x, x)
        h = self.second(h)  # here
        return self.head(h)
