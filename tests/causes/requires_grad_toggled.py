"""The generator's half of a step switches the critic off, in a helper, and on again."""

from torch import nn

ASK = {"parameters": {"critic.weight": "none"}}
KIND = "frozen"
TEXT = "its requires_grad is switched off for this backward"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Linear(8, 8)
        self.critic = nn.Linear(8, 1)

    def forward(self, x, fixed):
        made = self.generator(x)
        return self.critic(made.detach() if fixed else made)


def toggle(module, on):
    for parameter in module.parameters():
        parameter.requires_grad = on


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    model(batch["x"], True).mean().backward()
    toggle(model.module.critic, False)  # here
    model(batch["x"], False).mean().backward()
    toggle(model.module.critic, True)
    optimizer.step()
