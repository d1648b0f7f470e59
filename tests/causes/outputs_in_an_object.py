"""Outputs in an object that DDP does not look into, with find_unused_parameters: the line that returns it."""

from torch import nn
from torch.nn.functional import cross_entropy

ASK = {"firings": True}
DDP = {"find_unused_parameters": True}
KIND = "hidden-output"
TEXT = "DDP does not look into the object that is returned with 'logits', so find_unused_parameters=True books what that depends on as unused"


class Prediction:
    def __init__(self, logits):
        self.logits = logits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        logits = self.head(x)
        return Prediction(logits)  # here


def loss_terms(outputs, batch):
    return {"ce": cross_entropy(outputs.logits, batch["y"])}
