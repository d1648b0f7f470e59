"""Outputs, terms and losses of one scenario, and who reaches what."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddplint.evidence import Cause, Graph, StepSeen, bits

if TYPE_CHECKING:
    from ddplint.views.scenario import ScenarioView

At = tuple[int, int]


class Reach:
    """One graph with its bitsets as integers."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.outputs = {output.path: bits(output.behind) for output in graph.outputs}
        self.terms = {term.name: bits(term.reach) for term in graph.terms}
        self.total = bits(graph.total)
        self.arrived = {output.path for output in graph.outputs if output.in_total}


class Graphs:
    """The graphs of a scenario by (rank, step)."""

    def __init__(self, scenario: "ScenarioView"):
        self.scenario = scenario
        self.at: dict[At, Reach] = {}
        known: list[tuple[Graph, Reach]] = []
        for rank in scenario.ranks:
            reaches = [_reach_of(graph, known) for graph in rank.graphs]
            self.at |= {(rank.rank, s.step): reaches[s.graph] for s in rank.steps
                        if s.graph is not None and s.graph < len(reaches)}
        self.distinct = list({id(reach): reach for reach in self.at.values()}.values())

    def outputs_behind(self, position: int) -> list[str]:
        return sorted({path for r in self.distinct for path, behind in r.outputs.items() if behind >> position & 1})

    def terms_reaching(self, position: int) -> list[str]:
        return sorted({name for r in self.distinct for name, reach in r.terms.items() if reach >> position & 1})

    def lost_outputs(self, position: int, at: list[At]) -> list[str]:
        reaches = [self.at[place] for place in at if place in self.at]
        return sorted({path for r in reaches for path, behind in r.outputs.items()
                       if behind >> position & 1 and path not in r.arrived})

    def lost_terms(self, position: int, at: list[At]) -> list[str]:
        """Also a term that stands only at ``at`` and reaches nothing: it took the place of the others."""
        elsewhere = [r for place, r in self.at.items() if place not in at]
        reaching = {name for r in elsewhere for name, reach in r.terms.items() if reach >> position & 1}
        known = {name for r in elsewhere for name in r.terms}
        here = [self.at[place] for place in at if place in self.at]
        lost = {name for r in here for name in reaching if not r.terms.get(name)}
        return sorted(lost | {name for r in here for name, reach in r.terms.items() if not reach and name not in known})

    @functools.cached_property
    def touched(self) -> int:
        """Bitset of the parameters that any operation whose result was kept has read."""
        union = 0
        for r in self.distinct:
            for mask in (r.total, *r.outputs.values(), *r.terms.values()):
                union |= mask
        return union


def _reach_of(graph: Graph, known: list[tuple[Graph, Reach]]) -> Reach:
    """Ranks mostly see equal graphs: one Reach serves them."""
    for other, reach in known:
        if other is graph or other == graph:
            return reach
    known.append((graph, Reach(graph)))
    return known[-1][1]


class _Part:
    """An output or a term by its name, over all ranks and steps of one scenario."""

    kind = ""

    def __init__(self, scenario: "ScenarioView", name: str, seen: list[tuple[At, Any]]):
        self.scenario, self.name, self.seen = scenario, name, seen

    @property
    def differentiable(self) -> bool:
        """Whether it had a graph in any step on any rank."""
        return any(part.differentiable for _, part in self.seen)

    @property
    def in_total(self) -> bool:
        return any(part.in_total for _, part in self.seen)

    @property
    def ranks(self) -> list[int]:
        return sorted({rank for (rank, _), _ in self.seen})

    @property
    def steps(self) -> list[int]:
        return sorted({step for (_, step), _ in self.seen})

    @property
    def reach(self) -> int:
        """Bitset of the parameters that it depends on, in any step on any rank."""
        union = 0
        for r in self.scenario.graphs.distinct:
            union |= getattr(r, self.kind).get(self.name, 0)
        return union

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The parameters that it depends on."""
        return self.scenario.names(self.reach)

    @property
    def cause(self) -> Cause | None:
        return self.scenario.cause(f"{self.kind[:-1]}:{self.name}")


class OutputView(_Part):
    kind = "outputs"

    def __init__(self, scenario: "ScenarioView", path: str):
        super().__init__(scenario, path, [(at, o) for at, r in scenario.graphs.at.items()
                                          for o in r.graph.outputs if o.path == path])

    @property
    def visible(self) -> bool:
        """Whether DDP looks into the container that it was returned in."""
        return all(output.visible for _, output in self.seen)

    @property
    def shape(self) -> list[int]:
        return self.seen[-1][1].shape

    @property
    def terms(self) -> list[str]:
        """The terms that read it, in any step on any rank."""
        return sorted({term for _, output in self.seen for term in output.terms})

    @functools.cached_property
    def stranded(self) -> list[str]:
        """Those of its parameters that get no gradient on any rank in any step."""
        return self.scenario.names(self.reach & self.scenario.unused_bits)


class TermView(_Part):
    kind = "terms"

    def __init__(self, scenario: "ScenarioView", name: str):
        super().__init__(scenario, name, [(at, t) for at, r in scenario.graphs.at.items()
                                          for t in r.graph.terms if t.name == name])

    def contributes(self, at: At) -> bool:
        """Whether d total / d term was not zero there (unknown counts as not zero)."""
        term = self._at.get(at)
        return term is not None and term.in_total and self.scenario.step(at).weights.get(self.name, 1.0) != 0.0

    @functools.cached_property
    def _at(self) -> dict[At, Any]:
        return dict(self.seen)

    @functools.cached_property
    def contributes_at(self) -> list[At]:
        return [at for at, _ in self.seen if self.contributes(at)]

    @property
    def weights(self) -> list[float]:
        """d total / d term, wherever it was measured."""
        steps = [self.scenario.step(at) for at, _ in self.seen]
        return [step.weights[self.name] for step in steps if self.name in step.weights]

    @property
    def values(self) -> dict[At, float]:
        return {at: value for at, _ in self.seen if (value := self.scenario.step(at).values.get(self.name)) is not None}

    @functools.cached_property
    def stranded(self) -> list[str]:
        """The parameters that it reaches and no contributing term does, nor the total itself."""
        others = 0
        for r in self.scenario.graphs.distinct:
            others |= r.total if not self.contributes_at and not self.in_total else 0
        for term in self.scenario.terms:
            others |= term.reach if term.contributes_at else 0
        return self.scenario.names(self.reach & ~others)

    @functools.cached_property
    def own_outputs(self) -> list[str]:
        """The outputs that it reads and no contributing term does."""
        idle = {term.name for term in self.scenario.terms if not term.contributes_at} | {self.name}
        return [o.name for o in self.scenario.outputs if self.name in o.terms and set(o.terms) <= idle]

    @property
    def contributes_in(self) -> list[str]:
        """The other scenarios in which it contributes."""
        return [other.name for other in self.scenario.run.scenarios if other is not self.scenario
                and any(term.name == self.name and term.contributes_at for term in other.terms)]

    @property
    def place(self):
        return next((term.place for _, term in self.seen if term.place is not None), None)


@dataclass(frozen=True)
class LossStep:
    """The total of one step on one rank."""

    rank: int
    step: int
    value: float | None
    differentiable: bool | None
    shape: list[int] | None
    reaches: bool | None
    """Whether any parameter stands behind it; None where the graph is opaque or was not walked."""
    terms: dict[str, float]


class LossView:
    """The totals of one scenario."""

    kind = "losses"

    def __init__(self, scenario: "ScenarioView"):
        self.scenario, self.name = scenario, "total"

    @functools.cached_property
    def steps(self) -> list[LossStep]:
        return [self._step((rank.rank, seen.step), seen) for rank in self.scenario.ranks for seen in rank.steps
                if seen.total is not None or seen.total_differentiable is not None or seen.values]

    def _step(self, at: At, seen: StepSeen) -> LossStep:
        return LossStep(*at, seen.total, seen.total_differentiable, seen.total_shape, self._reaches(at, seen), seen.values)

    def _reaches(self, at: At, seen: StepSeen) -> bool | None:
        reach = self.scenario.graphs.at.get(at)
        if self.scenario.use.any_used_at(*at):
            return True         # what fired is proof, whatever the graph shows
        known = reach is not None and not reach.graph.opaque and seen.total_differentiable is not None
        return bool(reach.total) if known else None

    @property
    def cause(self) -> Cause | None:
        return self.scenario.cause("loss:")
