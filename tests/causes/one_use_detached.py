"""A shared weight one of whose uses is cut off."""

import torch
from torch import nn

ASK = {"uses": [["embedding.weight", "embedding"]]}
KIND = "severed"
TEXT = "cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 8)
        self.head = nn.Linear(8, 3, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, y):
        h = self.embedding(y).detach()  # here
        return self.head(torch.tanh(h))
