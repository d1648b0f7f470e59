"""A list is handed on and the callee reads a part of it."""

from torch import nn

ASK = {"parameters": {"encoder.norms.0.weight": "none"}}
KIND = "dead-end"
TEXT = "Head.forward() does not read this part of 'features'"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range(2)])

    def forward(self, x):
        features = []
        for stage, norm in zip(self.stages, self.norms, strict=True):
            x = stage(x)
            features.append(norm(x))
        return features


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, features):
        return self.fc(features[-1])  # here


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = Head()

    def forward(self, x):
        return self.head(self.encoder(x))
