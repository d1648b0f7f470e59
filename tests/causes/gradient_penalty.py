"""The output enters the loss only through its gradient."""

import torch
from torch import nn

ASK = {"parameters": {"score.bias": "none"}}
KIND = "output-not-in-loss"
TEXT = "output 'score' enters the loss only through a gradient of it, on which the parameter has no influence"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, x):
        return self.score(torch.tanh(self.trunk(x)))


def forward(model, batch):
    x = batch["x"].clone().requires_grad_()
    score = model(x)
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)  # here
    return {"score": score, "slope": slope}


def loss_terms(outputs, batch):
    return {"penalty": ((outputs["slope"].norm(dim=1) - 1) ** 2).mean()}
