"""Image models of torchvision and timm by name, without weights: nothing is downloaded."""

from typing import Any

from torch import nn


def torchvision_model(arch: str, num_classes: int = 10, **options: Any) -> nn.Module:
    """``torchvision.models.get_model``: resnet18, googlenet, inception_v3, vit_b_16, ..."""
    from torchvision import models
    return models.get_model(arch, weights=None, num_classes=num_classes, **options)


def timm_model(arch: str, num_classes: int = 10, **options: Any) -> nn.Module:
    """``timm.create_model``: resnet18, convnext_atto, vit_tiny_patch16_224, ..."""
    import timm
    return timm.create_model(arch, pretrained=False, num_classes=num_classes, **options)
