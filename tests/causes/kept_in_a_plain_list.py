"""Layers in a list are no submodules."""

from torch import nn

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "'blocks' is kept where nn.Module does not register it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)
        self.blocks = [nn.Linear(8, 8) for _ in range(2)]  # here

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
