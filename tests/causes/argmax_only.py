"""Scores choose a row and have no other effect."""

from torch import nn

ASK = {"parameters": {"router.weight": "none"}}
KIND = "severed"
TEXT = "used only through argmax(), which has no gradient"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.rows = nn.Embedding(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        choice = self.router(x).softmax(-1).argmax(-1)  # here
        return self.head(x + self.rows(choice))
