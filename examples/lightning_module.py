"""A LightningModule whose second head is logged, and left out of the loss."""

import importlib
from typing import Any

import lightning
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss


def build(module: str, **options: Any) -> nn.Module:
    """The LightningModule at a dotted path."""
    package, _, name = module.rpartition(".")
    return getattr(importlib.import_module(package), name)(**options)


class LitTwoTasks(lightning.LightningModule):
    """Classes and an age from one backbone; ``both`` adds the second loss, which is computed and only logged otherwise."""

    def __init__(self, features: int = 16, width: int = 32, classes: int = 5, both: bool = False):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(nn.Linear(features, width), nn.GELU())
        self.classes, self.age = nn.Linear(width, classes), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.backbone(x)
        return {"classes": self.classes(hidden), "age": self.age(hidden).squeeze(-1)}

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        x, label, age = batch
        outputs = self(x)
        loss = cross_entropy(outputs["classes"], label)
        age_loss = mse_loss(outputs["age"], age)
        if self.hparams.both:
            loss = loss + 0.1 * age_loss
        self.log("train/age", age_loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)
