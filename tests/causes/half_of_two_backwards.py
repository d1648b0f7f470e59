"""Two backwards after one forward, of which the first does not reach all that DDP waits for: the second."""

from torch import nn

ASK = {"firings": True}
KIND = "several-backwards"
TEXT = "backward() runs again after one wrapped forward, and reaches it again"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.left, self.right = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        hidden = self.trunk(x).relu()
        return self.left(hidden), self.right(hidden)


def train_step(model, batch, optimizer):
    left, right = model(batch["x"])
    left.mean().backward(retain_graph=True)
    right.mean().backward()  # here
    optimizer.step()
