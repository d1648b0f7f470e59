"""What modules put out: activations that are dead everywhere, and BatchNorm's values per channel."""

from typing import Any

import torch
from torch import nn

SATURATED = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Hardtanh": (-1.0, 1.0)}
EDGE = 1e-6


class Activations:
    """Only modules of torch.nn.modules.activation are looked at, and only while they have been dead in every call:
    one call with a live value settles it, so that a healthy model pays for its first step alone."""

    def __init__(self, model: nn.Module):
        kinds = {id(m): type(m) for m in model.modules()}
        self.suspects = {i for i, kind in kinds.items() if kind.__module__ == "torch.nn.modules.activation"
                         and kind is not nn.MultiheadAttention}
        self.dead: dict[int, str] = {}
        self.names = {id(m): name for name, m in model.named_modules()}
        self.batchnorm: dict[str, int] = {}

    def enter(self, module: nn.Module, name: str, args: Any) -> None:
        """Note how many values per channel a training BatchNorm gets."""
        synchronised = isinstance(module, nn.SyncBatchNorm)
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training and not synchronised and args:
            values = args[0].numel() // max(args[0].shape[1], 1) if args[0].dim() > 1 else args[0].numel()
            self.batchnorm[name] = min(values, self.batchnorm.get(name, values))

    def leave(self, module: nn.Module, output: Any) -> None:
        if id(module) not in self.suspects or not isinstance(output, torch.Tensor) or not output.numel():
            return
        state = _state(type(module).__name__, output)
        if state is None:
            self.suspects.discard(id(module))
            self.dead.pop(id(module), None)
        else:
            self.dead[id(module)] = state

    def found(self) -> dict[str, str]:
        """Module -> zero or saturated, where it was that in every call."""
        return {self.names[i]: state for i, state in self.dead.items()}


@torch.no_grad()
def _state(kind: str, output: torch.Tensor) -> str | None:
    if not output.any():
        return "zero"
    if kind in SATURATED:
        low, high = SATURATED[kind]
        if bool(((output - low).abs() < EDGE).logical_or((output - high).abs() < EDGE).all()):
            return "saturated"
    return None
