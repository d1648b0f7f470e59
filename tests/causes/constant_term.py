"""Without positives a term is a fresh zero."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"box.weight": "none"}, "outputs": ["box"]}
KIND = "output-not-in-loss"
TEXT = "term 'box' is a constant here, not connected to output 'box'"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.box = nn.Linear(8, 3)

    def forward(self, x):
        return {"main": self.main(x), "box": self.box(x)}


def loss_terms(outputs, batch):
    positive = batch["y"] > 7
    box = torch.zeros(())  # here
    if positive.any():
        box = outputs["box"][positive].abs().mean()
    return {"main": F.cross_entropy(outputs["main"], batch["y"]), "box": box}
