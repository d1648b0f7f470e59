"""A term with a weight of zero in the user's total."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "zero"}, "terms": ["aux"]}
KIND = "multiplied-by-zero"
TEXT = "multiplied by zero"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return self.main(x), self.aux(x)


def loss_terms(outputs, batch):
    return {"main": F.cross_entropy(outputs[0], batch["y"]), "aux": F.cross_entropy(outputs[1], batch["y"])}


def total_loss(terms):
    return terms["main"] + 0.0 * terms["aux"]  # here
