"""Did each parameter get a gradient? Measured locally, before DDP's reduction, in the states of evidence.py.

Two hooks a parameter. ``Tensor.register_hook`` sees the local gradient, but under find_unused_parameters (and in
static_graph's first step) DDP also fires it with an undefined one for parameters behind a dropped output;
``register_post_accumulate_grad_hook`` alone fires then too. So a firing counts only where the first saw a tensor.
After backward ``grad is None`` says nothing: DDP writes the average back on ranks that never used the parameter.
"""

import math
from collections.abc import Callable, Iterable

import torch

from ddplint.evidence import FROZEN, NONE, NONFINITE, NONZERO, ZERO


class Gradients:
    """The local gradients of the parameters that were trainable when DDP was built."""

    def __init__(self, parameters: Iterable[tuple[str, torch.nn.Parameter]]):
        self.names, self.parameters = zip(*parameters, strict=True) if (parameters := list(parameters)) else ((), ())
        self.trainable = [p.requires_grad for p in self.parameters]
        self.size = [0.0] * len(self.parameters)
        self.on_local_end: Callable[[], None] = lambda: None
        self.measure = largest_of
        self.layouts: dict[str, None] = {}
        self._pending: dict[int, torch.Tensor] = {}
        self._fresh: dict[int, torch.Tensor] = {}
        """What came since an optimizer stepped last."""
        self._firings = [0] * len(self.parameters)
        self.hooks = [hook for i, p in enumerate(self.parameters) if p.requires_grad for hook in self._watch(i, p)]
        self.begin_step()

    def _watch(self, i: int, parameter: torch.nn.Parameter) -> tuple:
        def local(gradient: torch.Tensor | None) -> None:
            if not self._queued:
                # Runs when the graph is through, before DDP's own callback, which waits for the other ranks.
                self._queued = True
                torch.autograd.Variable._execution_engine.queue_callback(self._local_end)
            if gradient is not None:
                self._pending[i] = self.measure(gradient)
                if not gradient.is_sparse and gradient.stride() != parameter.stride() and _strides(gradient) != _strides(parameter):
                    self.layouts[self.names[i]] = None

        def accumulated(_: torch.Tensor) -> None:
            if (largest := self._pending.pop(i, None)) is not None:
                self._seen.append((i, largest))
                self._firings[i] += 1
                self._fresh[i] = largest
        return parameter.register_hook(local), parameter.register_post_accumulate_grad_hook(accumulated)

    def begin_step(self) -> None:
        self._seen: list[tuple[int, torch.Tensor]] = []
        self._known = (-1, "")
        """How many of them the last answer of ``states`` was made of, and the answer."""
        self._synced: list[tuple[int, int]] = []
        self.armed = False
        """Whether DDP was armed since the last backward: without that, a further backward brings what the last one left out."""
        self.fired: dict[str, int] = {}
        self.begin_backward()

    def begin_backward(self) -> None:
        self._firings = [0] * len(self.parameters)
        self._queued, self._start = False, len(self._seen)
        self.through = False
        """Whether the graph is through, whatever DDP says of it then."""

    def _local_end(self) -> None:
        self.through = True
        self.on_local_end()

    def end_backward(self, synchronised: bool) -> None:
        """Remember who fired more than once within this backward, and what it used, if DDP was armed for it."""
        if synchronised:
            start = self._start if self.armed or not self._synced else self._synced.pop()[0]
            self._synced.append((start, len(self._seen)))
            self.armed = False
        for i, count in enumerate(self._firings):
            if count > 1:
                self.fired[self.names[i]] = max(count, self.fired.get(self.names[i], 0))
        self.begin_backward()

    def states(self) -> str:
        """The step's state of every parameter so far, a character each; moves all sizes to the host at once."""
        if self._known[0] != len(self._seen):
            self._known = len(self._seen), self._states(self._seen)
        return self._known[1]

    def synced(self) -> list[str]:
        """The states after each forward that armed DDP, unless that is the whole step."""
        if self._synced in ([], [(0, len(self._seen))]):
            return []
        return [self._states(self._seen[start:end]) for start, end in self._synced]

    def _states(self, seen: list[tuple[int, torch.Tensor]]) -> str:
        largest: dict[int, float] = {}
        for (i, _), size in zip(seen, _on_host(seen), strict=True):
            known = largest.get(i, 0.0)
            largest[i] = math.nan if math.isnan(size + known) else max(known, size)
        for i, size in largest.items():
            if math.isfinite(size):
                self.size[i] = max(self.size[i], size)
        return "".join(self._state(i, largest.get(i)) for i in range(len(self.parameters)))

    def _state(self, i: int, size: float | None) -> str:
        if not self.trainable[i]:
            return FROZEN
        if size is None:
            return NONE
        if not math.isfinite(size):
            return NONFINITE
        return NONZERO if size > 0 else ZERO

    def lost(self, held: dict[str, torch.nn.Parameter]) -> bool:
        """Whether an optimizer that steps now finds nothing of the gradients that came to its parameters since the last one did."""
        fresh, self._fresh = list(self._fresh.items()), {}
        if any(float(self.measure(p.grad)) != 0 for p in held.values() if p.grad is not None):
            return False
        return any(size > 0 for (i, _), size in zip(fresh, _on_host(fresh), strict=True) if self.names[i] in held)

    def first_nonfinite(self) -> str | None:
        """The parameter whose gradient was the first in the order of the backward pass that is not finite."""
        return next((self.names[i] for (i, _), size in zip(self._seen, _on_host(self._seen), strict=True) if not math.isfinite(size)), None)

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()


def _on_host(seen: list[tuple[int, torch.Tensor]]) -> list[float]:
    """All sizes, moved at once."""
    alike = len({size.dtype for _, size in seen}) == 1
    return torch.stack([size if alike else size.double() for _, size in seen]).tolist() if seen else []


def largest_of(gradient: torch.Tensor) -> torch.Tensor:
    """The largest absolute value, 0-dimensional and still on the device; NaN and inf pass through."""
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    if values.numel() == 0:
        return torch.zeros((), device=values.device)
    values = values.detach()
    low, high = torch.aminmax(torch.view_as_real(values) if values.is_complex() else values)
    return torch.maximum(high, -low)        # five times as fast on the CPU as the infinity norm


def _strides(tensor: torch.Tensor) -> list[int]:
    """Those that matter: an extent of 1 has any stride, and no other order in memory."""
    return [stride for stride, extent in zip(tensor.stride(), tensor.shape, strict=True) if extent > 1]
