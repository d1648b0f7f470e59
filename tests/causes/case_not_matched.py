"""The case in front of the call."""

from torch import nn

ASK = {"parameters": {"attention.weight": "none"}}
KIND = "module-not-called"
TEXT = "'attention' is not called: `case 'attention'` is not taken"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pooling = "mean"
        self.attention = nn.Linear(8, 1)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        match self.pooling:
            case "mean":
                x = x + x.mean()
            case "attention":  # here
                x = x * self.attention(x)
        return self.head(x)
