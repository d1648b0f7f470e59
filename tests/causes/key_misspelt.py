"""An output that the loss looks for under another name: the condition that never holds."""

from torch import nn
from torch.nn import functional as F

ASK = {"outputs": ["aux_logits"]}
KIND = "output-not-in-loss"
TEXT = "no term of the loss reads output 'aux_logits': `'aux_logit' in outputs` does not hold"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.aux = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x):
        return {"logits": self.head(x), "aux_logits": self.aux(x)}


def loss_terms(outputs, batch):
    terms = {"ce": F.cross_entropy(outputs["logits"], batch["y"])}
    if "aux_logit" in outputs:  # here
        terms["aux"] = F.cross_entropy(outputs["aux_logit"], batch["y"])
    return terms
