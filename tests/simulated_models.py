"""Models that the simulation must be able to run, and one spec for each of them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient * x


class Everything(nn.Module):
    """Tied weights, a buffer computed in forward, a custom function, both checkpoints, attention, a bag, an LSTM, masks;
    ``spare`` is never called."""

    def __init__(self, words: int = 50, width: int = 16):
        super().__init__()
        self.embed, self.out = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.out.weight = self.embed.weight
        self.bag = nn.EmbeddingBag(words, width, mode="mean")
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.recurrent, self.norm = nn.LSTM(width, width, batch_first=True), nn.BatchNorm1d(width)
        self.register_buffer("mean", torch.zeros(width))
        self.spare = nn.Linear(width, width)

    def forward(self, tokens, scale):
        x = self.embed(tokens)
        x = x + self.attention(x, x, x, need_weights=False)[0] + self.bag(tokens)[:, None]
        x = x + F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True)[:, 0]
        x = checkpoint(self.first, x, use_reentrant=False)
        x = checkpoint(self.second, x, use_reentrant=True)
        x = self.recurrent(x)[0]
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean((0, 1)), alpha=0.1)
        x = self.norm((Squared.apply(x) - self.mean).transpose(1, 2)).transpose(1, 2)
        kept = x[tokens % 3 > 0]
        return {"logits": self.out(x) * scale.mean(), "kept": kept, "log": x.detach().sum()}


def everything_on_meta():
    with torch.device("meta"):
        return Everything()


def token_loss(outputs, batch):
    logits = outputs["logits"].flatten(0, 1)
    return {"token": F.cross_entropy(logits, batch["tokens"].flatten()), "kept": outputs["kept"].pow(2).mean()}


class Gated(nn.Module):
    """Which half is used depends on the numbers of the batch."""

    def __init__(self):
        super().__init__()
        self.low, self.high, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x, gate):
        return self.head(self.high(x) if gate.mean() > 0 else self.low(x))


class Skipping(nn.Module):
    """Whether a layer is used depends on the numbers of the batch."""

    def __init__(self):
        super().__init__()
        self.low, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x, gate):
        x = self.low(x) if gate.mean() > 0 else x
        return self.head(x)


class Logged(nn.Module):
    """Looks at a number, but trains alike whatever it is."""

    def __init__(self):
        super().__init__()
        self.head, self.worst = nn.Linear(4, 1), 0.0

    def forward(self, x):
        y = self.head(x)
        if y.abs().max().item() > self.worst:
            self.worst = float(y.abs().max())
        return y


class Optional(nn.Module):
    """Batches without ``extra`` skip a layer."""

    def __init__(self):
        super().__init__()
        self.head, self.extra = nn.Linear(4, 1), nn.Linear(4, 4)

    def forward(self, x, extra=None):
        return self.head(x if extra is None else x + self.extra(extra))


def mean_loss(outputs, batch):
    return {"loss": outputs.pow(2).mean()}


def one_term_fewer(outputs, batch):
    return {"loss": outputs.pow(2).mean(), "other": outputs.abs().mean()}


def only_loss(terms):
    return terms["loss"] + 0.0 * terms["other"]
