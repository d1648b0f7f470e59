"""A weight divided by its own sum is constant: rounding noise is all that comes back."""

from torch import nn

ASK = {"parameters": {"gate.weight": "zero"}}
KIND = "multiplied-by-zero"
TEXT = "next to no gradient comes back through sum(): the result hardly depends on it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 64)
        self.trunk = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        weight = self.gate(x).unflatten(1, (16, 4)).softmax(-1).topk(1).values
        weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)  # here
        return self.head(weight.squeeze(-1) * self.trunk(x))
