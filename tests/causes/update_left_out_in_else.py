"""A loop that leaves the optimizer's step out in the other arm of a condition."""

from torch import nn
from torch.nn import functional as F

ASK = {"update": ["tests/causes/update_left_out_in_else.py", 27]}
KIND = "update-left-out"
TEXT = "this rank leaves the optimizer's step out: `loss.item() < 0.0` does not hold, and `return` comes first"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def train_step(model, batch, optimizer):
    loss = F.cross_entropy(model(batch["x"]), batch["y"])
    loss.backward()
    if loss.item() < 0.0:  # here
        loss.detach_()
    else:
        return
    optimizer.step()
