"""A head that is drawn anew in the loop, by the layer's own initialisation."""

from torch import nn
from torch.nn import functional as F

ASK = {"written": ["head.weight"]}
KIND = "written"
TEXT = "each rank writes values of its own here, after DDP was built"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(batch["x"]), batch["y"]).backward()
    optimizer.step()
    model.module.head.reset_parameters()  # here
