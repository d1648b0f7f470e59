"""Over how many elements each term is a mean, on this rank: DDP averages ranks, not elements."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ddplint.evidence import Place
from ddplint.record.source import user_place

CLASSES = ("cross_entropy", "nll_loss")
ELEMENTS = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss",
            "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss")
DIVISIONS = ("div", "true_divide", "__truediv__", "divide")
IGNORED = -100


class Counts(TorchFunctionMode):
    """Active while terms and total are computed; a scalar inherits the count of what it is made of."""

    def __init__(self):
        super().__init__()
        self._known: dict[int, tuple[torch.Tensor, float, Place | None]] = {}

    def of(self, term: torch.Tensor) -> tuple[float, Place | None] | None:
        """The count, and the user's line that divides by it."""
        return self._known[id(term)][1:] if id(term) in self._known else None

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dim() == 0 and result.is_floating_point():
            with torch.no_grad(), torch._C.DisableTorchFunction():
                count = self._count(getattr(func, "__name__", ""), args, kwargs or {})
            inherited = [self._known[id(a)] for a in args if id(a) in self._known]
            if count is not None:
                self._known[id(result)] = (result, count, user_place())
            elif inherited:
                self._known[id(result)] = (result, *max(inherited, key=lambda known: known[1])[1:])
        return result

    def _count(self, name: str, args: tuple, kwargs: dict) -> float | None:
        """The count of an operation that takes a mean; None for any other."""
        first = args[0] if args else kwargs.get("input")
        if not isinstance(first, torch.Tensor):
            return None
        if name in CLASSES and _is_mean(kwargs):
            return _labelled(args[1] if len(args) > 1 else kwargs.get("target"), kwargs.get("ignore_index", IGNORED))
        if (name in ELEMENTS and _is_mean(kwargs)) or name == "mean":
            return float(first.numel())
        divisor = args[1] if len(args) > 1 else None
        if name in DIVISIONS and isinstance(divisor, torch.Tensor) and divisor.dim() == 0 and not divisor.requires_grad:
            return float(divisor)
        return None


def _is_mean(kwargs: dict) -> bool:
    return kwargs.get("reduction", "mean") == "mean"


def _labelled(target: Any, ignored: int) -> float | None:
    if not isinstance(target, torch.Tensor):
        return None
    if target.is_floating_point():
        return float(target.shape[0])
    return float((target != ignored).sum())
