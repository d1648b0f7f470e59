"""In a rank: what a scenario's batch holds, and runs of scenarios that are not in the spec that the gang was given."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import torch

from ddplint.generators import entries
from ddplint.record.observe import run_scenario
from ddplint.record.program import Program
from ddplint.spec import Scenario, Spec

TIME = re.compile("epoch|step|stage|phase|progress|iteration")

def probe(spec: Spec, scenario: str, rank: int, world_size: int, device: torch.device, send: Callable[[str, Any], None]) -> bool:
    """Send ``entries``: (path, shape, whether floating, largest value where whole numbers) of every tensor of the first
    batch; and ``attributes``: those of the model that tell how far the training has come.
    """
    program = Program(spec, scenario, rank, world_size, device)
    program.resolve()
    send("attributes", [name for name, value in vars(program.build()).items() if _counts_time(name, value)])
    batch = program.batch(0)
    send("entries", [(path, list(t.shape), t.is_floating_point(), _largest(t)) for path, t, inside in entries(batch)
                     if isinstance(t, torch.Tensor) and not inside])
    return True


def _counts_time(name: str, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(TIME.search(name))


def _largest(tensor: torch.Tensor) -> int | None:
    whole = tensor.numel() > 0 and not tensor.is_floating_point() and not tensor.is_complex() and tensor.dtype != torch.bool
    return int(tensor.max()) if whole else None


def run(spec: Spec, scenario: str, scenarios: dict[str, Scenario], **place: Any) -> bool:
    return run_scenario(dataclasses.replace(spec, scenarios={**spec.scenarios, **scenarios}), scenario, **place)
