"""The steps that DDP's failure cut off, run on each rank alone: random parts show themselves only in several draws.

The same observation as in the real run, but the wrapper's reducer is never armed, so that it cannot fail; weights
follow the rank's own gradients from the first step on.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ddplint.record.observe import Observation
from ddplint.record.program import Program
from ddplint.record.solo import Solo, fake_group
from ddplint.record.source import set_folder
from ddplint.spec import Spec


class Foresight(Observation):
    wrapper_type = Solo


def run(spec: Spec, scenario: str, rank: int, send: Callable[[str, Any], None]) -> bool:
    """Stream what the scenario shows on one rank of a world that is not there (torch's ``fake`` group)."""
    set_folder(spec.folder)
    spec = dataclasses.replace(spec, ddp={})
    with fake_group(rank, spec.run.world_size):
        return Foresight(Program(spec, scenario, rank, spec.run.world_size, torch.device("cpu")), send).run()
