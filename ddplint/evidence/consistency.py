"""Whether evidence that was read from a file fits together: what was edited or cut must not be judged as if it were seen."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ddplint.evidence.step import FROZEN, NONE, NONFINITE, NONZERO, UNSEEN, ZERO

if TYPE_CHECKING:
    from ddplint.evidence import Evidence, Graph, Model, RankSeen, ScenarioSeen

STATES = {NONE, ZERO, NONZERO, NONFINITE, FROZEN, UNSEEN}
OUTCOMES = ("ok", "error", "hang", "crashed", "unknown")
ENDS = ("raised", "exited", "killed", "hung", "lost", "not run")
Faults = Iterator[str]


def first_fault(evidence: "Evidence") -> str | None:
    """The first place where the evidence contradicts itself, as ``place: what``."""
    return next(_faults(evidence), None)


def _faults(evidence: "Evidence") -> Faults:
    yield from _within("spec", _of_spec(evidence.spec))
    for i, model in enumerate(evidence.models):
        yield from _within(f"models[{i}]", _of_model(model))
    names = [seen.name for seen in evidence.scenarios]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield f"scenarios: {twice} is there twice"
    for i, seen in enumerate(evidence.scenarios):
        yield from _within(f"scenarios[{i}]", _of_scenario(seen, evidence.models))


def _of_spec(spec: dict[str, Any]) -> Faults:
    for key, least in (("world_size", 1), ("steps", 0)):
        number = spec.get(key, least)
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            yield f"{key}: expected a number of at least {least}, found {number!r}"
    if not isinstance(spec.get("ddp") or {}, dict):
        yield f"ddp: expected DDP's keywords, found {spec['ddp']!r}"
    known = spec.get("ddp_keywords", [])
    if not isinstance(known, list) or not all(isinstance(name, str) for name in known):
        yield "ddp_keywords: expected names"


def _within(where: str, faults: Faults) -> Faults:
    return (f"{where}.{fault}" for fault in faults)


def _of_model(model: "Model") -> Faults:
    names = [parameter.name for parameter in model.parameters]
    if len(set(names)) < len(names):
        yield "parameters: a name is there twice"
    for i, parameter in enumerate(model.parameters):
        if any(extent < 0 for extent in parameter.shape):
            yield f"parameters[{i}].shape: a negative extent"


def _of_scenario(seen: "ScenarioSeen", models: list["Model"]) -> Faults:
    if not 0 <= seen.model < max(len(models), 1):
        yield f"model: there is no model {seen.model}"
        return
    if seen.outcome.outcome not in OUTCOMES:
        yield f"outcome: expected one of {', '.join(OUTCOMES)}, found {seen.outcome.outcome!r}"
    numbers = [rank.rank for rank in seen.ranks]
    if len(set(numbers)) < len(numbers) or any(number < 0 for number in numbers):
        yield "ranks: expected each rank once"
    if seen.outcome.outcome == "ok" and any(rank.failure for rank in seen.ranks):
        yield "outcome: a rank failed, yet all went well"
    yield from _within("spec", _of_spec(seen.spec))
    if seen.accumulate < 1:
        yield "accumulate: expected at least 1"
    count = len(models[seen.model].parameters) if models else 0
    for term, sizes in (seen.by_term or {}).items():
        if len(sizes) != count:
            yield f"by_term.{term}: expected a number for each of {count} parameters, found {len(sizes)}"
    for i, rank in enumerate(seen.ranks):
        yield from _within(f"ranks[{i}]", _of_rank(rank, count))


def _of_rank(rank: "RankSeen", count: int) -> Faults:
    if rank.failure is not None and rank.failure.kind not in ENDS:
        yield f"failure.kind: expected one of {', '.join(ENDS)}, found {rank.failure.kind!r}"
    if rank.device is not None and rank.device.memory < 0:
        yield f"device.memory: expected a number of bytes, found {rank.device.memory}"
    if len(rank.size) not in (0, count):
        yield f"size: expected a number for each of {count} parameters, found {len(rank.size)}"
    steps = [step.step for step in rank.steps]
    if len(set(steps)) < len(steps) or any(step < 0 for step in steps):
        yield "steps: expected each step once"
    for i, step in enumerate(rank.steps):
        for use in (step.use, *step.synced):
            if (use and len(use) != count) or not STATES.issuperset(use):
                yield f"steps[{i}].use: expected one of {''.join(sorted(STATES))} for each of {count} parameters"
        if step.graph is not None and not 0 <= step.graph < len(rank.graphs):
            yield f"steps[{i}].graph: there is no graph {step.graph}"
    for i, graph in enumerate(rank.graphs):
        yield from _within(f"graphs[{i}]", _of_graph(graph, count))


def _of_graph(graph: "Graph", count: int) -> Faults:
    sets = [("total", graph.total), *((f"outputs[{i}].behind", o.behind) for i, o in enumerate(graph.outputs)),
            *((f"terms[{i}].reach", t.reach) for i, t in enumerate(graph.terms))]
    for where, text in sets:
        if not _is_set(text, count):
            yield f"{where}: expected a set of {count} parameters as a hexadecimal number, found {text[:20]!r}"
    if any(len(flow) != 2 for flow in graph.flows):
        yield "flows: expected pairs"
    if any(number < 0 for number in graph.calls.values()):
        yield "calls: a negative number"


def _is_set(text: str, count: int) -> bool:
    try:
        return 0 <= int(text, 16) < 1 << count
    except ValueError:
        return False
