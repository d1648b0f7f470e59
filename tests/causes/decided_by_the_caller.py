"""The caller computes the flag: that is where it is decided."""

from torch import nn

ASK = {"parameters": {"aux.weight": "none"}}
KIND = "module-not-called"
TEXT = "'aux' is not called: 'with_aux' is passed as `len(batch) > WARMUP`, and `with_aux` does not hold"

WARMUP = 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.aux = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, with_aux):
        if with_aux:
            x = x + self.aux(x)
        return self.head(x)


def forward(model, batch):
    return model(batch["x"], len(batch) > WARMUP)  # here
