"""Optimizers whose step makes a parameter non-finite although its gradient is finite."""

from typing import Any

import torch
from torch import nn

from ddplint.evidence import Cause, Place
from ddplint.record.hidden import nameless


class Updates:
    """Looks at the parameters before and after each step of an optimizer."""

    def __init__(self, model: nn.Module, places: dict[int, Place | None]):
        self.names, self.places = {id(p): name for name, p in model.named_parameters()}, places
        self.overshot: Cause | None = None
        """Why the first parameter stopped being finite, where its gradient was not."""
        self._finite: set[int] = set()

    def before(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._finite = {id(p) for group in optimizer.param_groups for p in group["params"] if _is_finite(p)}

    def after(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups if self.overshot is None else ():
            for p in group["params"]:
                if id(p) in self._finite and p.grad is not None and not _is_finite(p) and _is_finite(p.grad):
                    self.overshot = self._why(optimizer, group, p)
                    return

    def _why(self, optimizer: torch.optim.Optimizer, group: dict[str, Any], p: torch.Tensor) -> Cause:
        kind, reason = _reason(group, p.dtype)
        what = "NaN" if bool(p.isnan().any()) else "infinite"
        text = f"{type(optimizer).__name__}'s step makes '{self.names.get(id(p)) or nameless(p)}' {what}, though its gradient is finite"
        return Cause(kind, f"{text} ({reason})", self.places.get(id(optimizer)), type(optimizer).__name__)


def _reason(group: dict[str, Any], dtype: torch.dtype) -> tuple[str, str]:
    name, eps = str(dtype).removeprefix("torch."), group.get("eps")
    if isinstance(eps, float) and eps > 0 and float(torch.tensor(eps, dtype=dtype)) == 0:
        return "eps-underflow", f"eps={eps:g} is 0 in {name}"
    return "update-overflow", f"lr={float(group['lr']):g}, in {name}" if "lr" in group else f"in {name}"


def _is_finite(tensor: torch.Tensor) -> bool:
    return not tensor.is_sparse and bool(torch.isfinite(tensor.detach()).all())
