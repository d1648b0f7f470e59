"""A condition in a function that __init__ makes."""

from torch import nn

ASK = {"parameters": {"extra.weight": "none"}}
KIND = "module-not-called"
TEXT = "'extra' is not called: `self.enabled` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enabled = False
        self.extra = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)
        self.enrich = lambda x: x + self.extra(x) if self.enabled else x  # here

    def forward(self, x):
        return self.head(self.enrich(x))
