"""inf long before the NaN."""

from torch import nn

ASK = {"loss": True}
KIND = "nonfinite"
TEXT = "half() gives inf here, of finite inputs"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        large = (self.head(x) * 1e6).half()  # here
        return (large - large.max()).float()
