"""A layer that is made when the first batch comes."""

from torch import nn

ASK = {"strays": ["*"]}
KIND = "outside-ddp"
TEXT = "it is created after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = None

    def forward(self, x):
        h = self.trunk(x)
        if self.head is None:  # here
            self.head = nn.Linear(h.shape[1], 3)
        return self.head(h)
