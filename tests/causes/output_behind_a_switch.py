"""The only read of the output stands in a branch that is not taken."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "outputs": ["aux"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux': `'mask' in batch` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "aux": self.aux(x)}


def loss_terms(outputs, batch):
    terms = {"main": F.cross_entropy(outputs["main"], batch["y"])}
    if "mask" in batch:  # here
        terms["aux"] = F.mse_loss(outputs["aux"], batch["mask"])
    return terms
