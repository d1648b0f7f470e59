"""A looked-up code appears only inside detach(); the argmin on the way is not to blame."""

import torch
from torch import nn

ASK = {"parameters": {"codes.weight": "none"}}
KIND = "severed"
TEXT = "cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(5, 8)
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = self.trunk(x)
        nearest = torch.cdist(h, self.codes.weight).argmin(-1)
        code = h + (self.codes(nearest) - h).detach()  # here
        return self.head(code)
