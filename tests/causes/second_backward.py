"""Two losses behind one trunk, a backward for each: the second."""

from torch import nn

ASK = {"spent": True}
KIND = "second-backward"
TEXT = "an earlier backward() has freed the graph of this loss"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.left, self.right = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        hidden = self.trunk(x).tanh()
        return self.left(hidden), self.right(hidden)


def train_step(model, batch, optimizer):
    left, right = model(batch["x"])
    left.mean().backward()
    right.mean().backward()  # here
    optimizer.step()
