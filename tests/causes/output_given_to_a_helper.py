"""The helper returns before it reads its argument."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "outputs": ["aux"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux': `return 0.0` comes first"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "aux": self.aux(x)}


def aux_loss(prediction, target):
    if target is None:
        return 0.0  # here
    return F.mse_loss(prediction, target)


def loss_terms(outputs, batch):
    return {"all": F.cross_entropy(outputs["main"], batch["y"]) + aux_loss(outputs["aux"], batch.get("mask"))}
