"""A loop over the outputs that ends before the last of them: the condition of its break."""

from torch import nn
from torch.nn import functional as F

ASK = {"outputs": ["c"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'c': `len(terms) == 2` skips it"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(8, 3) for name in "abc"})

    def forward(self, x):
        return {name: head(x) for name, head in self.heads.items()}


def loss_terms(outputs, batch):
    terms = {}
    for name, logits in outputs.items():
        terms[name] = F.cross_entropy(logits, batch["y"])
        if len(terms) == 2:  # here
            break
    return terms
