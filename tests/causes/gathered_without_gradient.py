"""all_gather() hands over copies without a graph."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

ASK = {"loss": True}
KIND = "severed"
TEXT = "cut by all_gather()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        return F.normalize(self.head(x), dim=-1)


def loss_terms(outputs, batch):
    gathered = [torch.zeros_like(outputs) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, outputs)  # here
    everyone = torch.cat(gathered)
    return {"contrast": F.cross_entropy(everyone @ everyone.t(), torch.arange(len(everyone)))}
