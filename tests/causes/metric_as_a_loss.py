"""requires_grad_() on a metric gives a loss that trains nothing."""

from torch import nn

ASK = {"parameters": {"head.weight": "none"}, "terms": ["error"], "loss": True}
KIND = "severed"
TEXT = "used only through argmax(), which has no gradient"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    error = (outputs.argmax(-1) != batch["y"]).float().mean()  # here
    return {"error": error.requires_grad_()}
