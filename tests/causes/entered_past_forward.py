"""A part is entered through another method than forward()."""

from torch import nn

ASK = {"parameters": {"encoder.projection.weight": "none"}}
KIND = "module-not-called"
TEXT = "'encoder.projection' is not called: 'encoder' is entered through features(), not through forward()"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.projection = nn.Linear(8, 8)

    def features(self, x):
        return self.trunk(x)

    def forward(self, x):
        return self.projection(self.features(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder.features(x))  # here
