"""The terms callable reads one of two outputs."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "outputs": ["aux"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux'"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "aux": self.aux(x)}


def loss_terms(outputs, batch):
    return {"main": F.cross_entropy(outputs["main"], batch["y"])}  # here
