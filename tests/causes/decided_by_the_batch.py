"""What the batch holds is not decided by the caller: the if."""

from torch import nn

ASK = {"parameters": {"vision.weight": "none"}}
KIND = "module-not-called"
TEXT = "'vision' is not called: `image is not None` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x, image=None):
        if image is not None:  # here
            x = x + self.vision(image)
        return self.head(x)


def forward(model, batch):
    return model(batch["x"], batch.get("image"))
