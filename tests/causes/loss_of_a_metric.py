"""The loss is computed from class indices."""

from torch import nn

ASK = {"loss": True}
KIND = "severed"
TEXT = "used only through argmax(), which has no gradient"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x).argmax(-1)  # here


def loss_terms(outputs, batch):
    return {"error": (outputs != batch["y"]).float().mean()}
