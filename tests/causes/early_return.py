"""The return that comes before the call."""

from torch import nn

ASK = {"parameters": {"refine.weight": "none"}}
KIND = "module-not-called"
TEXT = "'refine' is not called: `return y` comes first"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage = 1
        self.head = nn.Linear(8, 3)
        self.refine = nn.Linear(3, 3)

    def forward(self, x):
        y = self.head(x)
        if self.stage < 2:
            return y  # here
        return self.refine(y)
