"""A comprehension leaves a head out."""

from torch import nn

ASK = {"parameters": {"heads.b.weight": "none"}}
KIND = "module-not-called"
TEXT = "'heads.b' is not called: `name in self.active` leaves it out"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.active = {"a"}
        self.heads = nn.ModuleDict({name: nn.Linear(8, 3) for name in "ab"})

    def forward(self, x):
        outputs = [
            head(x)
            for name, head in self.heads.items()
            if name in self.active  # here
        ]
        return outputs[0]
