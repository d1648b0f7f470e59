"""Pictures that are tables of numbers: the loss-term ledger and the size of gradients by depth."""

import math
from collections.abc import Iterable, Sequence

from ddplint.evidence import Graph, ScenarioSeen, bits
from ddplint.pictures.parts import Parts, distinct, graphs
from ddplint.report import Depth, LedgerRow, TermFlow


def ledger(parts: Parts, seen: ScenarioSeen) -> list[LedgerRow]:
    """A row per term; values and weights are those of the first rank's last step."""
    found = graphs(seen)
    return [_row(name, found, parts, seen) for name in dict.fromkeys(term.name for graph in found for term in graph.terms)]


def _row(name: str, found: list[Graph], parts: Parts, seen: ScenarioSeen) -> LedgerRow:
    terms = [term for graph in found for term in graph.terms if term.name == name]
    reach = 0
    for term in terms:
        reach |= bits(term.reach)
    shares = {module: (reach & mask).bit_count() / mask.bit_count() for module, mask in parts.rows.items()}
    steps = [step for rank in seen.ranks[:1] for step in rank.steps]
    return LedgerRow(seen.name, name, any(term.in_total for term in terms), any(term.differentiable for term in terms),
                     _last(step.values.get(name) for step in steps), _last(step.weights.get(name) for step in steps),
                     {module: share for module, share in shares.items() if share})


def _last(values: Iterable[float | None]) -> float | None:
    return next((value for value in reversed(list(values)) if value is not None), None)


def depths(parts: Parts, scenarios: list[ScenarioSeen]) -> list[Depth]:
    """Of the first model: per module the largest gradient of each scenario, over its ranks."""
    found = [Depth(module) for module in parts.columns]
    for seen in (seen for seen in scenarios if seen.model == 0):
        if sizes := _sizes(seen):
            sizes += [0.0] * (len(parts.owners) - len(sizes))
            for depth, positions in zip(found, parts.columns.values(), strict=True):
                depth.largest[seen.name] = _largest(list(map(sizes.__getitem__, positions)))
    return [depth for depth in found if depth.largest]


def term_flow(parts: Parts, seen: ScenarioSeen) -> TermFlow | None:
    """The columns of ``depths`` by loss term; None where nobody asked for it."""
    columns = {module: {term: _largest(known) for term, sizes in (seen.by_term or {}).items()
                        if (known := [sizes[i] for i in positions if sizes[i] is not None])}
               for module, positions in parts.columns.items()}
    found = [Depth(module, terms) for module, terms in columns.items() if terms]
    why = seen.unknown.get("by_term", "")
    return TermFlow(seen.name, found, why) if found or why else None


def _sizes(seen: ScenarioSeen) -> list[float]:
    """Per parameter the largest gradient over the ranks."""
    columns = [rank.size for rank in distinct(seen) if rank.size]
    longest = max(map(len, columns), default=0)
    padded = [column + [0.0] * (longest - len(column)) for column in columns]
    if len(padded) < 2:
        return list(padded[0]) if padded else []
    if any(any(map(math.isnan, column)) for column in padded):
        return list(map(_largest, zip(*padded, strict=True)))
    return list(map(max, *padded))


def _largest(sizes: Sequence[float]) -> float:
    """NaN counts as the largest of all."""
    return math.nan if any(map(math.isnan, sizes)) else max(sizes, default=0.0)
