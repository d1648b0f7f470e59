"""A loop whose validation leaves the model in eval mode: the branch that asks for training, from the second step on."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}}
KIND = "module-not-called"
TEXT = "'aux' is not called: `self.training` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.aux = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x):
        scores = self.head(x)
        if self.training:  # here
            scores = scores + self.aux(x)
        return scores


def train_step(model, batch, optimizer):
    F.cross_entropy(model(batch["x"]), batch["y"]).backward()
    model.eval()
    with torch.no_grad():
        model(batch["x"])
