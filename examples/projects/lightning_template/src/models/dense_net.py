import torch
from torch import nn


class DenseNet(nn.Module):
    """Class scores and, where ``project`` is set, an embedding for a contrastive loss."""

    def __init__(self, input_size: int, hidden_size: int, output_size: int, project: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(input_size, hidden_size), nn.BatchNorm1d(hidden_size), nn.ReLU())
        self.scores = nn.Linear(hidden_size, output_size)
        self.projection = nn.Linear(hidden_size, 16) if project else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        hidden = self.body(x.flatten(1))
        return self.scores(hidden), self.projection(hidden) if self.projection is not None else None
