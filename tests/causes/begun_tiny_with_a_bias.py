"""Two layers that begin tiny, as some vision towers do: the small gradient is the weights', not a rounding error's; the bias is no factor."""

from torch import nn

ASK = {"parameters": {"fc1.weight": "zero"}}
KIND = "scaled-down"
TEXT = "it is multiplied by numbers of at most 3e-10 in linear()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.fc1, self.fc2, self.head = nn.Linear(8, 16), nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 3)
        for layer in (self.fc1, self.fc2):
            nn.init.normal_(layer.weight, std=1e-10)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        hidden = self.stem(x)
        return self.head(hidden + self.fc2(nn.functional.gelu(self.fc1(hidden))))  # here
