"""A language model whose embedding and output layer are one weight; one of its two uses is cut off."""

import torch
from torch import nn


class TiedLanguageModel(nn.Module):
    """``detach_lookup`` is meant to save memory, and halves what the shared weight learns from."""

    def __init__(self, vocabulary: int = 100, width: int = 32, detach_lookup: bool = True):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        self.detach_lookup = detach_lookup

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        embedded = self.embedding(tokens)
        if self.detach_lookup:
            embedded = embedded.detach()
        hidden, _ = self.body(embedded)
        return self.head(hidden)


def next_token(outputs: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Each position predicts the token after it."""
    return nn.functional.cross_entropy(outputs[:, :-1].flatten(0, 1), batch["tokens"][:, 1:].flatten())
