"""Nothing calls it: where it was made."""

from torch import nn

ASK = {"parameters": {"unused.weight": "none"}}
KIND = "module-not-called"
TEXT = "'unused' is not called: nothing in this scenario's code calls it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.unused = nn.Linear(8, 7)  # here

    def forward(self, x):
        return self.head(x)
