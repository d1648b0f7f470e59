"""The only caller is a method that is itself not called."""

from torch import nn

ASK = {"parameters": {"decoder.weight": "none"}}
KIND = "module-not-called"
TEXT = "'decoder' is not called: `self.mode == 'full'` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = "encode"
        self.decoder = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def decode(self, h):
        return self.decoder(h)

    def forward(self, x):
        if self.mode == "full":  # here
            x = self.decode(x)
        return self.head(x)
