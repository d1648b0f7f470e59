"""item() takes a term out of the graph before it is added."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "terms": ["aux"]}
KIND = "term-not-in-total"
TEXT = "term 'aux' is turned into plain numbers by item() before it is added"


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
    aux = terms["aux"].item()  # here
    return terms["main"] + 0.1 * aux
