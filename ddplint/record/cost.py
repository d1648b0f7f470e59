"""What a setting of DDP costs: steps with it and without it in turn, in the same ranks."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ddplint.record.program import Program
from ddplint.record.remedy import Remedy
from ddplint.record.source import set_folder
from ddplint.record.wrap import wrap
from ddplint.spec import Spec

WARM_UP = 3
"""Steps before the clock runs: DDP rebuilds its buckets, and static_graph learns the graph."""
FEWEST, MOST, SECONDS = 9, 31, 6.0
"""Pairs of steps: as many as fit into so many seconds, within these bounds."""


def run(spec: Spec, scenario: str, rank: int, world_size: int, device: torch.device, send: Callable[[str, Any], None],
        variants: list[Remedy]) -> bool:
    """Send ``times`` from rank 0: for each variant of the program the seconds of its steps, in the order taken.

    A step counts until all ranks have ended it. Every variant has a model of its own, built under the same seed.
    """
    set_folder(spec.folder)
    runners = [_Runner(remedy, remedy.program(spec, scenario, rank, world_size, device)) for remedy in variants]
    send("phase", ("optimizer", 0))
    longest = torch.tensor([max(runner.seconds(i) for i in range(WARM_UP) for runner in runners)], dtype=torch.float64, device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    rounds = int(min(MOST, max(FEWEST, SECONDS / (float(longest) * len(runners)))))
    times: list[list[float]] = [[] for _ in runners]
    for i in range(rounds):
        order = range(len(runners)) if i % 2 else reversed(range(len(runners)))      # neither is always the first
        for j in order:
            times[j].append(runners[j].seconds(WARM_UP + i))
        send("phase", ("optimizer", i))
    if rank == 0:
        send("times", times)
    return True


class _Runner:
    def __init__(self, remedy: Remedy, program: Program):
        program.resolve()
        model = program.build()
        self.remedy, self.program, self.wrapper = remedy, program, wrap(model, program.spec.ddp, program.device)
        self.optimizer = program.make_optimizer(model)
        self._batches: dict[int, list] = {}

    def seconds(self, step: int) -> float:
        """The scenario's batches are made before the clock runs."""
        program, step = self.program, step % self.program.spec.run.steps
        program.prepare(step)
        parts = 1 if program.custom_step else program.accumulate
        if step not in self._batches:
            self._batches[step] = [program.batch(step * parts + part) for part in range(parts)]
        batches = self._batches[step]
        with self.remedy.applied():
            self._meet()
            start = time.perf_counter()
            if program.custom_step:
                program.step(self.wrapper, batches[0], self.optimizer)
            else:
                self._declared(batches)
            self._meet()
            return time.perf_counter() - start

    def _declared(self, batches: list) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        for part, batch in enumerate(batches):
            with contextlib.nullcontext() if part == len(batches) - 1 else self.wrapper.no_sync():
                (self.program.objective(self.wrapper, batch) / len(batches)).backward()
        self.optimizer.step()

    def _meet(self) -> None:
        if self.program.device.type == "cuda":
            torch.cuda.synchronize(self.program.device)
        dist.barrier()
