"""The gradient dies at the square because its input was made zero before: there."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "multiplied by zero"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)
        self.strength = 0.0

    def forward(self, x):
        return self.main(x), self.aux(x) * self.strength  # here


def loss_terms(outputs, batch):
    return {"main": F.cross_entropy(outputs[0], batch["y"]), "aux": outputs[1].pow(2).mean()}
