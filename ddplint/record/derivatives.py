"""Is each term's gradient the slope of that term? Directional derivatives in float64, for gradient-mismatch.

Per term and per top module: the analytic derivative along a random direction of that module's parameters, against the
central difference. Off by default, for it runs the model twice for every module and term.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ddplint.evidence import Derivative
from ddplint.record.batches import seed
from ddplint.record.program import Program
from ddplint.record.solo import Solo, fake_group
from ddplint.record.source import set_folder
from ddplint.spec import Spec

STEP = 1e-5
"""Of the moved parameters, relative to their own size: a compromise between rounding and curvature in float64."""


def run(spec: Spec, scenario: str, rank: int, send: Callable[[str, Any], None]) -> bool:
    """Send ``derivatives``: a Derivative per term and top module of the scenario's first batch."""
    set_folder(spec.folder)
    with fake_group(rank, spec.run.world_size):
        program = Program(spec, scenario, rank, spec.run.world_size, torch.device("cpu"))
        program.resolve()
        wrapper = Solo(program.build().double(), init_sync=False)
        program.prepare(0)
        send("derivatives", Slopes(program, wrapper).all())
    return True


class Slopes:
    def __init__(self, program: Program, wrapper: nn.Module):
        self.program, self.wrapper = program, wrapper
        self.batch = _double(program.batch(0))
        self.buffers = [b.clone() for b in program.model.buffers()]

    def terms(self) -> dict[str, torch.Tensor]:
        """The terms under the same draws and buffers each time."""
        seed(self.program.spec.run.seed, self.program.rank, 0)
        with torch.no_grad():
            for buffer, kept in zip(self.program.model.buffers(), self.buffers, strict=True):
                buffer.copy_(kept)
        terms, _ = self.program.terms(self.program.forward(self.wrapper, self.batch), self.batch)
        return {name: term.sum() for name, term in terms.items() if isinstance(term, torch.Tensor) and term.requires_grad}

    def all(self) -> list[Derivative]:
        groups: dict[str, dict[str, nn.Parameter]] = {}
        for name, parameter in self.program.model.named_parameters():
            if parameter.requires_grad and parameter.is_floating_point():
                groups.setdefault(name.partition(".")[0], {})[name] = parameter
        return [found for group in groups.values() for found in self._along(group)]

    def _along(self, group: dict[str, nn.Parameter]) -> list[Derivative]:
        generator = torch.Generator().manual_seed(self.program.spec.run.seed)
        direction = [torch.randn(p.shape, generator=generator, dtype=torch.float64) * (p.detach().abs().mean() + 1e-3)
                     for p in group.values()]
        analytic = {}
        for name in self.terms():
            gradients = torch.autograd.grad(self.terms()[name], list(group.values()), allow_unused=True)
            analytic[name] = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True) if g is not None)
        above, below = self._moved(group, direction, STEP), self._moved(group, direction, -STEP)
        return [Derivative(name, list(group), value, (above[name] - below[name]) / (2 * STEP))
                for name, value in analytic.items() if name in above and name in below]

    def _moved(self, group: dict[str, nn.Parameter], direction: list[torch.Tensor], step: float) -> dict[str, float]:
        kept = [p.detach().clone() for p in group.values()]
        with torch.no_grad():
            for p, d in zip(group.values(), direction, strict=True):
                p.add_(d, alpha=step)
        try:
            return {name: float(term.detach()) for name, term in self.terms().items()}
        finally:
            with torch.no_grad():
                for p, old in zip(group.values(), kept, strict=True):
                    p.copy_(old)


def _double(value: Any) -> Any:
    """Every floating tensor of a batch in float64."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _double(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(_double(item) for item in value)
    return value
