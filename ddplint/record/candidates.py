"""What an argument of a model's forward might be: tensor descriptions, the likeliest first, from its name and the layers."""

import itertools
from collections.abc import Iterator
from typing import Any

from torch import nn

BATCH, LENGTH = 4, 16
Description = dict[str, Any]

TOKENS = ("ids", "tokens", "token", "text", "src", "tgt", "words", "chars", "captions", "indices")
MASKS = ("mask",)
LABELS = ("label", "labels", "target", "targets", "y", "classes")


def combinations(names: list[str], model: nn.Module, most: int = 60) -> Iterator[dict[str, Description]]:
    """Batches to try, each a description by argument; the likeliest of every argument first."""
    choices = [candidates(name, model) for name in names]
    for combination in itertools.islice(itertools.product(*choices), most):
        yield dict(zip(names, combination, strict=True))


def candidates(name: str, model: nn.Module) -> list[Description]:
    words = set(name.lower().replace("-", "_").split("_"))
    config = getattr(model, "config", None)
    if words & set(LABELS):
        return _labels(model, config)
    if words & set(MASKS):
        return [{"shape": [BATCH, LENGTH], "value": 1, "dtype": "int64"}, {"shape": [BATCH, LENGTH], "value": True}]
    if "token" in words and "type" in words:
        return [{"shape": [BATCH, LENGTH], "value": 0, "dtype": "int64"}]
    vocabulary = _vocabulary(model, config)
    if words & set(TOKENS) and vocabulary:
        return [{"shape": [BATCH, LENGTH], "integers": [0, vocabulary]}, {"shape": [BATCH], "integers": [0, vocabulary]}]
    return [*_by_layer(model, config), {"shape": [BATCH, 3, 64, 64], "normal": [0, 1]}, {"shape": [BATCH], "normal": [0, 1]}]


def _labels(model: nn.Module, config: Any) -> list[Description]:
    classes = getattr(config, "num_labels", None) or 2
    found = [{"shape": [BATCH], "integers": [0, classes]}]
    if vocabulary := _vocabulary(model, config):
        found.append({"shape": [BATCH, LENGTH], "integers": [0, min(vocabulary, classes) if config else vocabulary]})
        found.append({"shape": [BATCH, LENGTH], "integers": [0, vocabulary]})
    return [*found, {"shape": [BATCH], "normal": [0, 1]}, {"shape": [BATCH, 1], "normal": [0, 1]}]


def _vocabulary(model: nn.Module, config: Any) -> int:
    if isinstance(size := getattr(config, "vocab_size", None), int):
        return size
    return next((m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)), 0)


def _by_layer(model: nn.Module, config: Any) -> list[Description]:
    """What the first layers take in."""
    found: list[Description] = []
    for module in itertools.islice((m for m in model.modules() if not list(m.children())), 40):
        for shape in _shapes(module, config):
            filled = {"integers": [0, module.num_embeddings]} if isinstance(module, nn.Embedding) else {"normal": [0, 1]}
            if {"shape": shape, **filled} not in found:
                found.append({"shape": shape, **filled})
    return found[:8]


def _shapes(module: nn.Module, config: Any) -> list[list[int]]:
    kinds = {nn.Conv1d: [64], nn.Conv2d: [64, 64], nn.Conv3d: [8, 32, 32]}
    for kind, extents in kinds.items():
        if isinstance(module, kind):
            sizes = [[size, size] for size in (64, 32, 28, 224)] if kind is nn.Conv2d else [extents]
            if isinstance(size := getattr(config, "image_size", None), int):
                sizes = [[size, size]]
            return [[BATCH, module.in_channels, *size] for size in sizes]
    if isinstance(module, nn.Linear):
        return [[BATCH, module.in_features], [BATCH, LENGTH, module.in_features], *_images_of(module.in_features)]
    if isinstance(module, nn.RNNBase):
        return [[BATCH, LENGTH, module.input_size]]
    if isinstance(module, nn.Embedding):
        return [[BATCH, LENGTH], [BATCH]]
    return []


def _images_of(features: int) -> list[list[int]]:
    """Images that a model may flatten for its first linear layer: 784 is 1 x 28 x 28."""
    found = []
    for channels in (1, 3):
        side = round((features / channels) ** 0.5)
        if side > 3 and side * side * channels == features:
            found.append([BATCH, channels, side, side])
    return found
