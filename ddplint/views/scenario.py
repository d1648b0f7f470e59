"""One scenario: what its ranks saw, in names."""

import functools
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ddplint.evidence import NONE, UNSEEN, Cause, Event, Failure, Model, RankSeen, ScenarioSeen, StepSeen, Use
from ddplint.views.aspects import why_not
from ddplint.views.failures import classify, more_was_due, stopped_within
from ddplint.views.graph import At, Graphs, LossView, OutputView, TermView
from ddplint.views.parameter import ParameterView
from ddplint.views.table import UseTable

if TYPE_CHECKING:
    from ddplint.views.run import RunView


class ScenarioView:
    kind = "scenarios"

    def __init__(self, run: "RunView", seen: ScenarioSeen):
        self.run, self.seen, self.name = run, seen, seen.name
        models = run.evidence.models
        self.model = models[seen.model] if seen.model < len(models) else Model("")
        self.spec = run.evidence.spec | seen.spec
        self.ddp = self.spec.get("ddp") or {}
        self.ranks: list[RankSeen] = sorted(seen.ranks, key=lambda rank: rank.rank)
        self.world_size = self.spec.get("world_size") or len(seen.ranks)
        self._parameters: dict[int, ParameterView] = {}

    # ------------------------------------------------------------------ what was asked of DDP

    @property
    def finds_unused(self) -> bool:
        return bool(self.ddp.get("find_unused_parameters"))

    @property
    def static(self) -> bool:
        return bool(self.ddp.get("static_graph"))

    @property
    def accumulate(self) -> int:
        return self.seen.accumulate

    @property
    def outcome(self):
        """What DDP did in the real run."""
        return self.seen.outcome

    @property
    def differences(self):
        return self.seen.differences

    @property
    def mismatches(self):
        return self.seen.mismatches

    # ------------------------------------------------------------------ parameters

    @functools.cached_property
    def use(self) -> UseTable:
        uses = {(rank.rank, step.step): self._known(step.use, rank, step) for rank in self.ranks for step in rank.steps
                if step.use and not self._skipped_backward(rank, step) and not stopped_within(rank, step)}
        return UseTable(uses, len(self.model.parameters))

    def _known(self, use: str, rank: RankSeen, step: StepSeen) -> str:
        """In a loop of the user's own that was cut off, a backward that did not come might have reached what others did not."""
        return use.replace(NONE, UNSEEN) if self.seen.custom_step and more_was_due(rank, step) else use

    def _skipped_backward(self, rank: RankSeen, step: StepSeen) -> bool:
        """Whether this rank ran no backward in a step in which another did: its parameters did not lack a gradient."""
        ran = self._ran_backward.get(step.step, ())
        return bool(ran) and rank.rank not in ran and step.phase != "foreseen"

    @functools.cached_property
    def _ran_backward(self) -> dict[int, set[int]]:
        """Step -> the ranks that ran a backward in it."""
        ran: dict[int, set[int]] = {}
        for rank, event in self.events("backward"):
            ran.setdefault(event.step, set()).add(rank)
        return ran

    def parameter(self, position: int) -> ParameterView:
        view = self._parameters.get(position)
        if view is None:
            view = self._parameters[position] = ParameterView(self, position)
        return view

    @property
    def parameters(self) -> Iterable[ParameterView]:
        return map(self.parameter, range(len(self.model.parameters)))

    @functools.cached_property
    def by_module(self) -> dict[str, list[int]]:
        """Module -> the positions of its own trainable parameters."""
        found: dict[str, list[int]] = {}
        for i, p in enumerate(self.model.parameters):
            if p.trainable:
                found.setdefault(p.module or p.name.rpartition(".")[0], []).append(i)
        return found

    @functools.cached_property
    def sizes(self) -> list[float]:
        """Per parameter, the largest absolute gradient over all ranks and steps; empty where none was noted."""
        count = len(self.model.parameters)
        known = [rank.size for rank in self.ranks if len(rank.size) == count]
        return list(map(max, *known)) if len(known) > 1 else list(known[0]) if known else []

    @functools.cached_property
    def median_size(self) -> float | None:
        """Over the parameters that got a gradient other than zero."""
        positive = [size for size in self.sizes if size > 0]
        return statistics.median(positive) if positive else None

    @functools.cached_property
    def unused_bits(self) -> int:
        return sum(1 << i for i in self.use.unused)

    @functools.cached_property
    def faint(self) -> list[int]:
        """Parameters whose gradient is exactly zero, or so much smaller than the others' that it may count as zero."""
        floor = (self.median_size or 0.0) * 1e-3
        small = [i for i, size in enumerate(self.sizes) if size < floor] if self.sizes and min(self.sizes) < floor else []
        used = set(self.use.used) if small else set()
        return sorted({*self.use.zero, *(i for i in small if i in used)})

    @functools.cached_property
    def unreduced(self) -> dict[int, list[At]]:
        """Position -> (rank, step): there was a gradient, but not in every backward that DDP was armed for."""
        found: dict[int, list[At]] = {}
        for rank, step in [(r, s) for r in self.ranks for s in r.steps if s.synced]:
            at = rank.rank, step.step
            tables = [UseTable({at: self._known(use, rank, step)}, len(self.model.parameters)) for use in step.synced]
            for i in {i for table in tables for i in table.unused}.intersection(self.use.used_at(*at)):
                found.setdefault(i, []).append(at)
        return found

    @property
    def unsteady(self) -> Sequence[int]:
        """Used in some backwards, and not in others."""
        return sorted({*self.use.varying, *self.unreduced}) if self.unreduced else self.use.varying

    @property
    def lacking(self) -> Sequence[int]:
        """Without a gradient in some backward."""
        return sorted({*self.use.missing, *self.unreduced}) if self.unreduced else self.use.missing

    def among(self, name: str) -> Sequence[int]:
        """The positions of a named part of the parameters: a list of this view or of UseTable."""
        return getattr(self if hasattr(self, name) else self.use, name)

    @functools.cached_property
    def first_nonfinite(self) -> int | None:
        """The first step in which any gradient is not finite."""
        if not self.use.nonfinite:
            return None
        return min(step for i in self.use.nonfinite for _, step in self.parameter(i).nonfinite_at)

    def nonfinite_names(self, at: list[At]) -> list[str]:
        """The parameters whose gradient is not finite at one of these (rank, step)."""
        places = set(at)
        return [self.model.parameters[i].name for i in self.use.nonfinite if places & set(self.parameter(i).nonfinite_at)]

    def fired_twice(self) -> dict[str, int]:
        """Parameter -> how often its gradient was complete within one backward, where that is more than once."""
        found: dict[str, int] = {}
        for step in self._steps.values():
            for name, times in step.fired.items():
                found[name] = max(times, found.get(name, 0))
        return found

    def stacks(self, depths: int) -> list[list[tuple[str, float]]]:
        """Stacks of at least ``depths`` equal layers that got a gradient: (name of a matrix, its largest gradient)."""
        found = []
        for stack in self.run.stacks(self.seen.model):
            sized = [(self.model.parameters[i].name, self.sizes[i]) for i in stack if self.sizes[i] > 0]
            if len(sized) >= depths:
                found.append(sized)
        return found

    @property
    def uninitialized(self) -> list[int]:
        """Lazy parameters that had no shape when DDP was built."""
        return self.run.uninitialized[self.seen.model] if self.model.parameters else []

    @functools.cached_property
    def forward_ended(self) -> bool:
        """Whether a forward came to its end in some step, so that a module that was not called was left out."""
        return any(step.use or step.phase not in ("batch", "forward") for step in self.steps()) and bool(self.graphs.distinct)

    def called(self, module: str) -> bool:
        return any(module in reach.graph.calls for reach in self.graphs.distinct)

    @functools.cached_property
    def shared(self) -> list[str]:
        """The parameters that have several names."""
        return [p.name for p in self.model.parameters if p.aliases]

    def uses(self, parameter: str) -> list[Use]:
        """Every use of a shared parameter, of each kind of step that was seen."""
        return [use for r in self.graphs.distinct for use in r.graph.uses if use.parameter == parameter]

    def names(self, mask: int) -> list[str]:
        """The trainable parameters of a bitset, in the model's order."""
        return [p.name for i, p in enumerate(self.model.parameters) if mask >> i & 1 and p.trainable] if mask else []

    def names_of(self, positions: Iterable[int]) -> list[str]:
        return [self.model.parameters[i].name for i in positions]

    # ------------------------------------------------------------------ outputs, terms, total

    @functools.cached_property
    def graphs(self) -> Graphs:
        return Graphs(self)

    @functools.cached_property
    def outputs(self) -> list[OutputView]:
        return [OutputView(self, path) for path in _ordered(o.path for r in self.graphs.distinct for o in r.graph.outputs)]

    @functools.cached_property
    def terms(self) -> list[TermView]:
        return [TermView(self, name) for name in _ordered(t.name for r in self.graphs.distinct for t in r.graph.terms)]

    @functools.cached_property
    def loss(self) -> LossView:
        return LossView(self)

    @property
    def opaque(self) -> list[str]:
        """Why the graph does not show everything."""
        return sorted({why for r in self.graphs.distinct for why in r.graph.opaque})

    @functools.cached_property
    def _steps(self) -> dict[At, StepSeen]:
        return {(rank.rank, step.step): step for rank in self.ranks for step in rank.steps}

    def step(self, at: At) -> StepSeen:
        return self._steps.get(at) or StepSeen(at[1])

    def steps(self) -> Iterable[StepSeen]:
        """Every step of every rank."""
        return self._steps.values()

    @property
    def steps_seen(self) -> list[At]:
        return list(self._steps)

    @functools.cached_property
    def steps_begun(self) -> set[At]:
        """Also those of which only events are known, because the rank never came out of them."""
        return {*self._steps, *((rank.rank, event.step) for rank in self.ranks for event in rank.events)}

    # ------------------------------------------------------------------ events and ends

    def events(self, *kinds: str, rank: int | None = None, step: int | None = None) -> list[tuple[int, Event]]:
        """(rank, event) in order, of these kinds (all, without one)."""
        ranks = self.ranks if rank is None else self._numbered.get(rank, ())
        return [(seen.rank, event) for seen in ranks for event in seen.events
                if (not kinds or event.kind in kinds) and step in (None, event.step)]

    @functools.cached_property
    def _numbered(self) -> dict[int, list[RankSeen]]:
        return {rank.rank: [rank] for rank in self.ranks}

    @property
    def joined(self) -> bool:
        return any(event.kind == "join" for rank in self.ranks for event in rank.events)

    @property
    def failures(self) -> list[tuple[int, Failure]]:
        return [(rank.rank, rank.failure) for rank in self.ranks if rank.failure is not None]

    @functools.cached_property
    def failed_as(self) -> dict[str, list[tuple[int, Failure]]]:
        """Class of failure (see ``failures.classify``) -> the ranks that ended so."""
        found: dict[str, list[tuple[int, Failure]]] = {}
        for rank, failure in self.failures:
            found.setdefault(classify(failure), []).append((rank, failure))
        return found

    def cause(self, *subjects: str) -> Cause | None:
        """The recorded cause of the first of these subjects that has one."""
        return next((self.seen.causes[s] for s in subjects if s in self.seen.causes), None)

    def notes(self, text: str) -> list[tuple[int, str]]:
        return [(rank.rank, note) for rank in self.ranks for note in rank.notes if text in note]

    def why_unknown(self, aspect: str) -> str | None:
        """Why nothing can be said about an aspect here (see aspects.py); None where something can."""
        return self.seen.unknown.get(aspect) or why_not(self, aspect)


def _ordered(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
