"""A dispatch table takes the other one."""

from torch import nn

ASK = {"parameters": {"second.weight": "none"}}
KIND = "module-not-called"
TEXT = "'second' is not called: `{'a': self.first, 'b': self.second}[self.kind]` picks others"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind = "a"
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        encoder = {"a": self.first, "b": self.second}[self.kind]  # here
        return self.head(encoder(x))
