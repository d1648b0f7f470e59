"""A step that returns before backward(): the condition that lets it."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"head.weight": "none"}}
KIND = "backward-left-out"
TEXT = "backward() is not called: `loss < 1000000000.0` holds, and `return` comes first"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch["x"]), batch["y"])
    if loss < 1e9:  # here
        return
    loss.backward()
    optimizer.step()
