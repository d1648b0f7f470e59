"""A head that no batch asks for."""

from torch import nn

ASK = {"parameters": {"heads.b.weight": "none"}}
KIND = "module-not-called"
TEXT = "'heads.b' is not called: `self.heads[task]` picks others"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 3), "b": nn.Linear(8, 3)})

    def forward(self, x):
        task = "a"
        return self.heads[task](x)  # here
