"""``+scenario=explore``: a search for inputs that take another way through the model than the given scenarios.

Guided by coverage: an input counts where it brings a set of used parameters, an arm of a branch or an outcome of DDP that
none brought before; what counts becomes a start for further changes. Every change is one generator, so that the finding
is a scenario to paste. Runs in the parent, imports no torch.
"""

import dataclasses
import json
import random
from collections.abc import Iterator
from typing import Any

from ddplint.evidence import NONZERO, ZERO, ScenarioSeen
from ddplint.record.assemble import scenario_seen
from ddplint.record.gang import Gang
from ddplint.spec import Scenario, Spec
from ddplint.views.failures import classify

STEPS = 2
"""So many that DDP can complain at the second forward."""
GENERATORS = "ddplint.generators."
NOT_DDPS = ("other", "loader-ended", "one-value")
"""Failures of an input that the model does not take: no behaviour of DDP's."""


def discover(spec: Spec, gang: Gang) -> dict[str, Scenario]:
    """The scenarios that behave in a new way, smallest change first, each named after its change.

    ``spec.explore`` inputs are tried at most, in an order that follows from ``run.seed``.
    """
    return _Search(spec, gang).run()


class _Search:
    def __init__(self, spec: Spec, gang: Gang):
        self.spec, self.gang, self.budget = spec, gang, spec.explore
        self.known: set[Any] = set()
        self.found: dict[str, Scenario] = {}
        self.origin: dict[str, str] = {name: name for name in spec.lint}
        """Scenario -> the given one that it was changed from."""
        self.probed: dict[str, dict[str, list]] = {}

    def run(self) -> dict[str, Scenario]:
        given = list(self.spec.lint)
        for name in given:
            self.known |= behaviour(self._seen(name)) or set()
        starts = [self.spec.scenarios[name] for name in given]
        while starts and self.budget > 0:
            starts = [new for start in starts for new in self._around(start)]
        return self.found

    def _around(self, start: Scenario) -> Iterator[Scenario]:
        """The changes of one scenario that count."""
        candidates = list(self._changes(start))
        random.Random(self.spec.run.seed).shuffle(candidates)
        candidates.sort(key=_harsh)
        for candidate in candidates:
            if self.budget <= 0:
                return
            new = self._new(candidate)
            if new:
                smallest = self._shrunk(start, candidate, new)
                self.known |= new
                self.found[smallest.name], self.origin[smallest.name] = smallest, self.origin[start.name]
                yield smallest

    def _new(self, candidate: Scenario) -> set[Any]:
        self.budget -= 1
        shown = behaviour(self._seen(candidate.name, {**self.found, candidate.name: candidate}))
        return set() if shown is None else shown - self.known

    def _shrunk(self, start: Scenario, candidate: Scenario, new: set[Any]) -> Scenario:
        """The weakest of its like that still shows all that is new."""
        scale = candidate.batch.get("scale") if isinstance(candidate.batch, dict) else None
        for weaker in (10.0, 100.0, 1000.0) if scale is not None and abs(scale) > 1 else ():
            smaller = _change(start, "extreme_values", keys=candidate.batch["keys"], scale=weaker if scale > 0 else -weaker)
            if self.budget > 0 and self._new(smaller) >= new:
                return smaller
        return candidate

    def _seen(self, name: str, more: dict[str, Scenario] | None = None) -> ScenarioSeen:
        everything = {**self.spec.scenarios, **self.found, **(more or {})}
        transcripts = self.gang.run("ddplint.record.attempt:run", scenario=name, scenarios=everything)
        return scenario_seen(dataclasses.replace(self.spec, scenarios=everything), name, transcripts)[0]

    # ------------------------------------------------------------------ what can be changed

    def _changes(self, start: Scenario) -> Iterator[Scenario]:
        if start.ranks or start.sequence:
            return
        if start.mode == "train":
            yield dataclasses.replace(start, name=f"{start.name}_eval", mode="eval")
        inside = self._inside(self.origin[start.name])
        for attribute in inside.get("attributes", ()):
            for value in (1, 20, 1000):
                yield dataclasses.replace(start, name=f"{start.name}_{attribute}_{value}", set={**start.set, attribute: value})
        yield _change(start, "batch_of_one")
        yield _change(start, "last_incomplete_batch")
        for key, shape, floating, largest in inside.get("entries", ()):
            yield _change(start, "missing_modality", keys=key)
            if floating:
                for scale in (-1.0, 0.0, 1e4, -1e4):
                    yield _change(start, "extreme_values", keys=key, scale=scale)
            if largest is not None:
                for value in sorted({0, largest, largest + 1}):
                    yield _change(start, "one_class_only", keys=key, value=value)
                yield _change(start, "all_labels_ignored", keys=key)
            for dim in range(1, min(len(shape), 3)):
                yield _change(start, "empty_targets", keys=key, dim=dim)
                if shape[dim] > 1:
                    yield _change(start, "short_sequences", keys=key, dim=dim)

    def _inside(self, name: str) -> dict[str, list]:
        """What the batch and the model hold; see ``attempt.probe``."""
        if name not in self.probed:
            transcript = self.gang.run("ddplint.record.attempt:probe", scenario=name)[0]
            self.probed[name] = {kind: body for kind, body in transcript.messages if kind in ("entries", "attributes")}
        return self.probed[name]


def _change(start: Scenario, generator: str, **options: Any) -> Scenario:
    told = "_".join(str(part) for part in options.values())
    name = "_".join(part for part in (start.name, generator, told.replace(".", "_").replace("-", "minus_")) if part)
    node = {"_target_": GENERATORS + generator, "base": start.name, **options}
    return dataclasses.replace(start, name=name, batch=node, loader=None, file=None)


def _harsh(candidate: Scenario) -> bool:
    """Inputs that hardly occur come last: what a milder one shows is told by that."""
    node = candidate.batch if isinstance(candidate.batch, dict) else {}
    return node.get("scale", -1.0) != -1.0 or str(node.get("_target_")).endswith((".missing_modality", ".all_labels_ignored"))


def behaviour(seen: ScenarioSeen) -> set[Any] | None:
    """Used sets, arms taken and outcome, as things that can be new; None where the model does not take the input."""
    failures = [rank.failure for rank in seen.ranks if rank.failure is not None]
    kinds = {classify(failure) for failure in failures} - {"collateral"}
    if kinds & set(NOT_DDPS):
        return None
    shown: set[Any] = {("outcome", kind) for kind in kinds or {"ok"}}
    shown |= {("arm", b.place.file, b.place.line, b.arm, b.module) for b in seen.branches or () if b.taken}
    shown |= {("use", _used(step.use)) for rank in seen.ranks for step in rank.steps if step.use}
    return shown


def _used(use: str) -> str:
    """Zero or not is no other way through the model; none and not finite are."""
    return use.replace(ZERO, NONZERO)


def pasted(name: str, scenario: Scenario) -> str:
    """The scenario as one line of YAML for a file of configs/scenario."""
    body: dict[str, Any] = {"batch": scenario.batch} if scenario.batch is not None else {}
    body |= {"loader": scenario.loader} if scenario.loader is not None else {}
    body |= {"file": scenario.file} if scenario.file is not None else {}
    body |= {key: getattr(scenario, key) for key in ("mode", "autocast", "accumulate", "set")
             if getattr(scenario, key) != getattr(Scenario(""), key)}
    return f"{name}: {json.dumps(body)}"
