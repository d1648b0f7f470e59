"""An evaluation that never switched gradients on again."""

import torch
from torch import nn

ASK = {"loss": True}
KIND = "severed"
TEXT = "gradients are switched off here, around linear()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def evaluate(model, x):
    torch.set_grad_enabled(False)  # here
    return model(x)


def forward(model, batch):
    evaluate(model, batch["x"])
    return model(batch["x"])
