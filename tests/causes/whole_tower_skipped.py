"""A tower of many parts is named once, by its top."""

from torch import nn

ASK = {"parameters": {"tower.blocks.0.0.weight": "none", "tower.norm.weight": "none"}}
KIND = "module-not-called"
TEXT = "'tower' is not called: `image is not None` does not hold"


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU())])
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = Tower()
        self.head = nn.Linear(8, 3)

    def forward(self, x, image=None):
        if image is not None:  # here
            x = x + self.tower(image)
        return self.head(x)
