"""In the user's own step the total is what backward() is called on."""

from torch import nn
from torch.nn import functional as F

ASK = {"parameters": {"aux.weight": "none"}}
KIND = "severed"
TEXT = "output '1': cut by detach()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        return self.main(x), self.aux(x)


def train_step(model, batch, optimizer):
    optimizer.zero_grad()
    main, aux = model(batch["x"])
    loss = F.cross_entropy(main, batch["y"]) + F.cross_entropy(aux.detach(), batch["y"])  # here
    loss.backward()
    optimizer.step()
