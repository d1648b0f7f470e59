"""Chunks of a sequence, each with a backward of its own: the state goes on with its graph; a running mean that no loss reads does, too."""

import torch
from torch import nn

ASK = {"spent": True}
KIND = "kept-graph"
TEXT = "what is read here is kept from before an earlier backward(), which has freed its graph"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRUCell(8, 8)

    def forward(self, x, state):
        return self.rnn(x, state)  # here


def train_step(model, batch, optimizer):
    state, mean = torch.zeros(4, 8), 0.0
    for scale in (1.0, 2.0):
        state = model(batch["x"] * scale, state)
        loss = state.square().mean()
        mean = mean + loss.sqrt()
        loss.backward()
    optimizer.step()
