"""The loss is a method of the model, and is called past the wrapper."""

from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x, y):
        return cross_entropy(self.head(x), y)


def train_step(model, batch, optimizer, wrapped: bool = False):
    optimizer.zero_grad()
    (model if wrapped else model.module)(**batch).backward()
    optimizer.step()
