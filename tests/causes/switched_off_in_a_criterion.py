"""The loss object's own switch."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "outputs": ["aux"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux': `self.weight > 0` does not hold"


class Criterion:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, outputs, labels):
        loss = F.cross_entropy(outputs["main"], labels)
        if self.weight > 0:  # here
            loss = loss + self.weight * outputs["aux"].pow(2).mean()
        return loss


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "aux": self.aux(x)}


def loss_terms(outputs, batch):
    return {"all": Criterion(0.0)(outputs, batch["y"])}
