"""An argument that the callee never reads."""

from torch import nn

ASK = {"parameters": {"context.weight": "none"}}
KIND = "dead-end"
TEXT = "it is handed on, and Head.forward() does not read 'context'"


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x, context=None):  # here
        return self.fc(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.context = nn.Linear(8, 8)
        self.head = Head()

    def forward(self, x):
        return self.head(x, self.context(x))
