"""Experts: each sample runs through the one that its domain names. A domain that never comes trains nobody."""

import torch
from torch import nn


class RoutedNet(nn.Module):
    def __init__(self, features: int = 16, width: int = 32, experts: int = 4):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.stem(x))
        routed = torch.zeros_like(hidden)
        for index, expert in enumerate(self.experts):
            chosen = domain == index
            if chosen.any():
                routed[chosen] = expert(hidden[chosen])
        return self.head(routed).squeeze(-1)
