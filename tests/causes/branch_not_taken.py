"""The if that guards the call."""

from torch import nn

ASK = {"parameters": {"aux.weight": "none"}}
KIND = "module-not-called"
TEXT = "'aux' is not called: `self.use_aux` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.use_aux = False
        self.aux = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        if self.use_aux:  # here
            x = x + self.aux(x)
        return self.head(x)
