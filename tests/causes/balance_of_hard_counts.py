"""A balance loss of counts; a detached scale and a metric in the same mapping are no terms of the sum."""

import torch
from torch import nn
from torch.nn import functional as F

ASK = {"terms": ["balance"]}
KIND = "ungraphed"
TEXT = "one_hot() makes it of the indices that topk() gives, which have no gradient"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    weight, index = outputs.softmax(-1).topk(2, -1)
    load = F.one_hot(index, 3).sum((0, 1)).float() / index.numel()  # here
    scale = weight.detach().mean()
    terms = {"ce": F.cross_entropy(outputs, batch["y"]), "balance": 3 * (load * load).sum(), "scale": scale, "hits": (index == 0).float().mean()}
    return scale * terms["ce"] + torch.tensor(0.01) * terms["balance"], terms
