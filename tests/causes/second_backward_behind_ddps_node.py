"""Two losses with nothing in common but DDP's node behind the outputs: the second backward."""

from torch import nn

ASK = {"spent": True}
DDP = {"find_unused_parameters": True}
KIND = "second-backward"
TEXT = "under find_unused_parameters=True all outputs of one wrapped forward hang on one node, and an earlier backward() has freed all that lies behind it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.left(x).tanh(), self.right(x).tanh()


def train_step(model, batch, optimizer):
    model(batch["x"])[0].mean().backward()
    left, right = model(batch["x"])
    left.mean().backward()
    right.mean().backward()  # here
    optimizer.step()
