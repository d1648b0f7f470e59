"""A hidden state that is kept from step to step with its graph: the call that reads it."""

from torch import nn

ASK = {"spent": True}
KIND = "kept-graph"
TEXT = "'state' is kept from before an earlier backward(), which has freed its graph"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRUCell(8, 8), nn.Linear(8, 3)
        self.state, self.average = None, 0.0

    def forward(self, x):
        self.average = 0.9 * self.average + x.mean()
        self.state = self.rnn(x, self.state)  # here
        return self.head(self.state)
