"""The elif in front of the call, not the if that was taken."""

from torch import nn

ASK = {"parameters": {"attention.weight": "none"}}
KIND = "module-not-called"
TEXT = "'attention' is not called: `self.pooling == 'attention'` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pooling = "mean"
        self.attention = nn.Linear(8, 1)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        if self.pooling == "mean":
            x = x + x.mean()
        elif self.pooling == "attention":  # here
            x = x * self.attention(x)
        return self.head(x)
