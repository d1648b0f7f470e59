"""A subclass's forward passes over its parent's layer."""

from torch import nn

ASK = {"parameters": {"classifier.weight": "none"}}
KIND = "module-not-called"
TEXT = "'classifier' is not called: nothing in this scenario's code calls it"


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.classifier = nn.Linear(8, 10)  # here

    def forward(self, x):
        return self.classifier(self.trunk(x))


class Net(Base):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.trunk(x))
