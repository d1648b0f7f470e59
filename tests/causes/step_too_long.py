"""A learning rate that no weight survives, in a loop of the user's own."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"loss": True}
KIND = "update-overflow"
TEXT = "SGD's step makes 'head.weight' infinite, though its gradient is finite (lr=1e+38, in float32)"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def make_optimizer(model):
    torch.optim.SGD(model.parameters(), lr=0.1)
    return torch.optim.SGD(model.parameters(), lr=1e38)  # here


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(1e6 * model(batch["x"]), batch["y"]).backward()
    optimizer.step()
