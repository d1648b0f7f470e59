"""The mean over no sample."""

from torch import nn

ASK = {"terms": ["error"], "loss": True}
KIND = "nonfinite"
TEXT = "mean() gives NaN here, of finite inputs"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(x)


def loss_terms(outputs, batch):
    valid = batch["y"] > 7
    return {"error": outputs[valid].abs().mean()}  # here
