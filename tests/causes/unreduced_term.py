"""The term that was not reduced to a scalar."""

from torch import nn
from torch.nn import functional as F

ASK = {"loss": True}
KIND = "nonscalar"
TEXT = "term 'ce' has 4 elements"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    return {"ce": F.cross_entropy(outputs, batch["y"], reduction="none")}  # here
