"""A detector in the calling form of torchvision's: it takes the targets and returns a mapping of losses."""

import torch
from torch import nn
from torch.nn import functional


class Detector(nn.Module):
    """A batch without boxes leaves the box head out, unless ``touch_empty`` keeps it in the graph."""

    def __init__(self, width: int = 16, touch_empty: bool = False):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.GELU(),
        )
        self.objectness = nn.Linear(width, 1)
        self.box_head = nn.Linear(width, 4)
        self.touch_empty = touch_empty

    def forward(self, image: torch.Tensor, boxes: torch.Tensor) -> dict[str, torch.Tensor]:
        """``image`` [N, 3, H, W]; ``boxes`` [N, K, 4], with K = 0 where nothing is to be seen."""
        features = self.backbone(image).mean((2, 3))
        present = torch.full((len(image), 1), float(boxes.shape[1] > 0), device=image.device)
        return {
            "objectness": functional.binary_cross_entropy_with_logits(self.objectness(features), present),
            "box": self.box_loss(features, boxes),
        }

    def box_loss(self, features: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        if boxes.shape[1] == 0:
            if self.touch_empty:
                return 0.0 * self.box_head(features).sum()
            return features.new_zeros(())
        predicted = self.box_head(features).unsqueeze(1).expand_as(boxes)
        return functional.smooth_l1_loss(predicted, boxes)
