"""Both arms stand on one line."""

from torch import nn

ASK = {"parameters": {"norm.weight": "none"}}
KIND = "module-not-called"
TEXT = "'norm' is not called: `self.pre_norm` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre_norm = False
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.norm(x) if self.pre_norm else x  # here
        return self.head(x)
