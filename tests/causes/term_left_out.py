"""A term that is computed and not added."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "terms": ["aux"]}
KIND = "term-not-in-total"
TEXT = "term 'aux' is not in the total"


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
    return terms["main"]  # here
