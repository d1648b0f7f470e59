"""What was last written into the values, not where the layer was made."""

from torch import nn

ASK = {"parameters": {"down.weight": "zero", "up.weight": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "'down.weight' and 'up.weight' are both all zero, and each one's gradient is a product with the other"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(8, 2, bias=False)
        self.up = nn.Linear(2, 8, bias=False)
        self.head = nn.Linear(8, 3)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.down.weight)  # here

    def forward(self, x):
        return self.head(x + self.up(self.down(x)))
