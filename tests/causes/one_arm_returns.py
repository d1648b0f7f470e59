"""The other arm returns from a call of its own: the if."""

from torch import nn

ASK = {"parameters": {"classify.weight": "none"}}
KIND = "module-not-called"
TEXT = "'classify' is not called: `self.task == 'segment'` skips it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.task = "segment"
        self.segment = nn.Linear(8, 3)
        self.classify = nn.Linear(8, 3)

    def forward(self, x):
        if self.task == "segment":  # here
            return self.segment(x)
        return self.classify(x)
