"""What each loss term adds to the gradient of the total (run.by_term), for the picture by depth and term.

A scenario's first step once more, in a process of its own: it takes a backward for every term, which would change what
the real run does.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ddplint.record.gradients import largest_of
from ddplint.record.program import Program
from ddplint.record.solo import Solo, fake_group, uncompiled
from ddplint.record.source import set_folder
from ddplint.spec import Spec


def run(spec: Spec, scenario: str, rank: int, send: Callable[[str, Any], None]) -> bool:
    """Send ``by-term``: term -> per parameter the largest absolute value, None where the term does not lead to it."""
    set_folder(spec.folder)
    with uncompiled(), fake_group(rank, spec.run.world_size):
        program = Program(spec, scenario, rank, spec.run.world_size, torch.device("cpu"))
        program.resolve()
        model = program.build()
        program.prepare(0)
        batch = program.batch(0)
        with program.autocast():
            terms, given = program.terms(program.forward(Solo(model, init_sync=False), batch), batch)
            total = program.total(terms, given)
        send("by-term", shares(model, terms, total))
    return True


def shares(model: nn.Module, terms: dict[str, Any], total: torch.Tensor) -> dict[str, list[float | None]]:
    """Only of the terms that stand in the total's graph."""
    parameters = list(model.parameters())
    trainable = [p for p in parameters if p.requires_grad]
    found = {}
    for name, term in terms.items():
        if not isinstance(term, torch.Tensor) or not term.requires_grad:
            continue
        [weight] = torch.autograd.grad(total, [term], retain_graph=True, allow_unused=True)
        if weight is None:
            continue
        gradients = torch.autograd.grad(term, trainable, weight, retain_graph=True, allow_unused=True)
        sizes = {id(p): float(f"{largest_of(g):.3g}") for p, g in zip(trainable, gradients, strict=True) if g is not None}
        found[name] = [sizes.get(id(p)) for p in parameters]
    return found
