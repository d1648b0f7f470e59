"""Products by their picture and, where there is one, their text."""

import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self, width: int = 32, vocabulary: int = 500, categories: int = 8):
        super().__init__()
        self.picture = nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.words = nn.EmbeddingBag(vocabulary, width)
        self.text = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, categories)

    def forward(self, picture: torch.Tensor, text: torch.Tensor | None = None) -> torch.Tensor:
        hidden = self.picture(picture)
        if text is not None:
            hidden = hidden + self.text(self.words(text))
        return self.head(hidden)
