"""The last samples of all ranks as evidence, which the rules judge like that of a lint. Imports no torch."""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ddplint.evidence import (
    NONE,
    UNSEEN,
    Cause,
    Change,
    Difference,
    Evidence,
    Failure,
    Graph,
    Model,
    Outcome,
    RankSeen,
    ScenarioSeen,
    StepSeen,
)
from ddplint.monitor.reading import Reading
from ddplint.record.assemble import differ
from ddplint.version import VERSION

CERTAIN = 3
"""So many samples before a parameter without a gradient counts, where find_unused_parameters makes that legal."""
NOT_THE_SAME = Cause("unknown", "an update was not the same on every rank: the gradient was not reduced, or the parameter "
                     "was changed outside of the optimizer")


@dataclass
class Sampled:
    """One sample: every rank's reading, and what only rank 0 knows of it."""

    step: int
    readings: list[Reading | None]
    """By rank; None where a rank could not be read."""
    term_names: list[str] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    graph: Graph | None = None
    changes: list[Change] = field(default_factory=list)
    causes: dict[str, Cause] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    compared: bool = True
    """Whether the ranks could be compared (not under join, and not where one is missing)."""


class Window:
    def __init__(self, model: Model, spec: dict[str, Any], name: str, size: int):
        self.model, self.spec, self.name = model, spec, name
        self.samples: deque[Sampled] = deque(maxlen=size)
        self._told_model = False

    def add(self, sampled: Sampled) -> None:
        self.samples.append(sampled)

    def evidence(self) -> Evidence:
        """The window; until usage is certain, parameters without a gradient are unseen where DDP allows them."""
        certain = not self.spec["ddp"].get("find_unused_parameters") or len(self.samples) >= CERTAIN
        return self._evidence(self.samples, [self.model], certain)

    def line(self) -> Evidence:
        """The last sample alone; the first line brings the model (see evidence_file.from_lines)."""
        models, self._told_model = [] if self._told_model else [self.model], True
        return self._evidence([self.samples[-1]], models, True)

    def _evidence(self, samples: Iterable[Sampled], models: list[Model], certain: bool) -> Evidence:
        samples = list(samples)
        seen = ScenarioSeen(self.name, custom_step=True, differences=self._differences(samples))
        seen.ranks = [self._rank(rank, samples, certain) for rank in range(self.spec["world_size"])]
        for sampled in samples:
            seen.causes |= {k: v for k, v in sampled.causes.items() if k not in seen.causes}
        if seen.differences:
            seen.causes.setdefault("ranks:", NOT_THE_SAME)
        seen.outcome = _outcome(samples)
        if not any(sampled.compared for sampled in samples):
            seen.unknown["ranks"] = "the ranks were not compared"
        return Evidence({**self.spec, "steps": samples[-1].step + 1}, models, [seen], version=VERSION)

    def _rank(self, rank: int, samples: list[Sampled], certain: bool) -> RankSeen:
        seen = RankSeen(rank, size=[0.0] * len(self.model.parameters))
        for sampled in samples:
            if (reading := sampled.readings[rank]) is not None:
                seen.steps.append(self._step(rank, sampled, reading, seen.graphs, certain))
                seen.size = [max(a, b) if math.isfinite(b) else a for a, b in zip(seen.size, reading.sizes, strict=True)]
            seen.failure = seen.failure or sampled.failures.get(rank)
            if rank == 0:
                seen.changes += sampled.changes
        seen.size = [float(f"{size:.3g}") for size in seen.size]
        return seen

    def _step(self, rank: int, sampled: Sampled, reading: Reading, graphs: list[Graph], certain: bool) -> StepSeen:
        use = reading.use if certain else reading.use.replace(NONE, UNSEEN)
        values = {name: value for name, value in zip(sampled.term_names, reading.terms, strict=False) if value is not None}
        step = StepSeen(sampled.step, "done", use=use, values=values, total=reading.total)
        step.total_differentiable = True if reading.total is not None else None
        if reading.synced.strip(UNSEEN):
            step.synced = [reading.synced]
        if rank == 0:
            step.weights = dict(sampled.weights)
            if sampled.graph is not None:
                if sampled.graph not in graphs:
                    graphs.append(sampled.graph)
                step.graph = graphs.index(sampled.graph)
        return step

    def _differences(self, samples: list[Sampled]) -> list[Difference]:
        found = []
        for sampled in samples:
            if sampled.compared and None not in sampled.readings:
                columns = zip(*(reading.signatures for reading in sampled.readings), strict=True)
                names = [p.name for p, values in zip(self.model.parameters, columns, strict=True) if differ(list(values))]
                found += [Difference("parameters", sampled.step, names)] if names else []
        return found


def _outcome(samples: list[Sampled]) -> Outcome:
    for sampled in samples:
        own = {rank: f for rank, f in sampled.failures.items() if not f.collateral} or sampled.failures
        if own:
            first = next(iter(own.values()))
            return Outcome("error", sorted(own), first.step, first.phase, first.message)
    return Outcome()
