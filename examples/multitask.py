"""A two-headed CNN: whether its segmentation head learns is decided by the loss, not here."""

import torch
from torch import nn


class MultiTaskNet(nn.Module):
    """Classes of the whole image, and a map of regions at a quarter of its size."""

    def __init__(self, classes: int = 10, regions: int = 20, width: int = 16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.GELU(),
        )
        self.cls_head = nn.Linear(2 * width, classes)
        self.seg_head = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1), nn.GELU(),
            nn.Conv2d(width, regions, 1),
        )

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        features = self.backbone(image)
        return {"cls": self.cls_head(features.mean((2, 3))), "seg": self.seg_head(features)}
