"""A queue of keys is overwritten in the forward that has just read it."""

import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self, clone: bool = False):
        super().__init__()
        self.encoder, self.clone = nn.Linear(8, 3), clone
        self.register_buffer("queue", torch.eye(3))

    def forward(self, x):
        query = self.encoder(x)
        logits = query @ (self.queue.clone() if self.clone else self.queue)
        self.queue[:, 0] = query[0].detach()
        return logits
