"""The discriminator's half of a step does not reach the generator."""

from torch import nn

ASK = {"parameters": {"generator.weight": "none"}}
KIND = "severed"
TEXT = "cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Linear(8, 8)
        self.critic = nn.Linear(8, 1)

    def forward(self, x, fixed):
        made = self.generator(x)
        return self.critic(made.detach() if fixed else made)  # here


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    model(batch["x"], True).mean().backward()
    model(batch["x"], False).mean().backward()
    optimizer.step()
