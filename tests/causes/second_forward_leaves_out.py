"""Two forwards before one backward, with find_unused_parameters: the second, which does not reach what the first does."""

from torch import nn
from torch.nn.functional import cross_entropy

ASK = {"firings": True}
DDP = {"find_unused_parameters": True}
KIND = "several-forwards"
TEXT = "this forward runs before the backward of an earlier one and does not reach it, so find_unused_parameters=True books it as unused"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x, classify):
        hidden = self.trunk(x).relu()
        return self.head(hidden) if classify else hidden


def train_step(model, batch, optimizer):
    logits = model(batch["x"], classify=True)
    other = model(-batch["x"], classify=False)  # here
    (cross_entropy(logits, batch["y"]) + other.square().mean()).backward()
    optimizer.step()
