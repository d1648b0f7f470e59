"""The loss detaches the output."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}, "outputs": ["aux"]}
KIND = "severed"
TEXT = "output 'aux': cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "aux": self.aux(x)}


def loss_terms(outputs, batch):
    aux = outputs["aux"].detach()  # here
    return {"main": F.cross_entropy(outputs["main"], batch["y"]), "aux": aux.pow(2).mean()}
