"""A constant term is not to blame for an output that the loss never names."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"extra.weight": "none"}, "outputs": ["extra"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'extra'"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.box = nn.Linear(8, 3)
        self.extra = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "box": self.box(x), "extra": self.extra(x)}


def loss_terms(outputs, batch):
    positive = batch["y"] > 7
    box = outputs["box"][positive].mean() if positive.any() else torch.zeros(())
    main = F.cross_entropy(outputs["main"], batch["y"])
    return {"main": main, "box": box}  # here
