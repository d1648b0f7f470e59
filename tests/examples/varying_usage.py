"""A head that joins after a warm-up of two steps."""

from torch import nn


class Net(nn.Module):
    def __init__(self, warmup: int = 2):
        super().__init__()
        self.head, self.late, self.warmup, self.step = nn.Linear(8, 3), nn.Linear(8, 3), warmup, 0

    def forward(self, x):
        self.step += 1
        logits = self.head(x)
        return logits + self.late(x) if self.step > self.warmup else logits
