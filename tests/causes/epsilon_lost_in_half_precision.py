"""Adam's eps is 0 in float16: where a gradient is 0 the update is 0 / 0."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"loss": True}
KIND = "eps-underflow"
TEXT = "Adam's step makes 'embed.weight' NaN, though its gradient is finite (eps=1e-08 is 0 in float16)"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.embed((100 * x[:, 0]).long() % 9))


def make_model():
    return Net().half()


def make_optimizer(model):
    return torch.optim.Adam(model.parameters())  # here


def loss_terms(outputs, batch):
    return {"ce": F.cross_entropy(outputs.float(), batch["y"])}
