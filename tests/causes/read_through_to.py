"""A parameter that is only read as ``self.p.to(dtype)``, under an if: the if."""

import torch
from torch import nn

ASK = {"parameters": {"mask_token": "none"}}
KIND = "not-used-by-module"
TEXT = "nothing reads the parameter: `mask is not None` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.mask_token = nn.Linear(8, 3), nn.Parameter(torch.zeros(8))

    def forward(self, x, mask=None):
        if mask is not None:  # here
            x = torch.where(mask[:, None], self.mask_token.to(x.dtype), x)
        return self.head(x)
