"""A penalty on all weights, outside of the wrapped forward, with find_unused_parameters: the line that reads them."""

from torch import nn
from torch.nn.functional import cross_entropy

ASK = {"firings": True}
DDP = {"find_unused_parameters": True}
KIND = "read-outside"
TEXT = "it is read outside of the wrapped forward, which does not reach it, so find_unused_parameters=True books it as unused"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(8, 3) for _ in range(2))

    def forward(self, x):
        return self.heads[0](x)

    def penalty(self):
        return sum(p.square().sum() for p in self.parameters() if p.ndim > 1)  # here


def train_step(model, batch, optimizer):
    loss = cross_entropy(model(batch["x"]), batch["y"])
    (loss + 1e-3 * model.module.penalty()).backward()
    optimizer.step()
