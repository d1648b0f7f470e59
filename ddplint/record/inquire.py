"""What a scenario leaves to be explained: the solo runs that look for causes. Runs in the parent."""

import math
from collections import Counter

from ddplint import evidence
from ddplint.evidence import Graph, Model, RankSeen, ScenarioSeen, StepSeen, bits
from ddplint.record.request import MISSING, NONFINITE, ZERO, Request

TINY = 1e-6
INPLACE = "modified by an inplace operation"
TWICE = "ready only once"
SPENT = "backward through the graph a second time"


def requests(seen: ScenarioSeen, model: Model, called_in: dict[str, list[str]]) -> list[Request]:
    """At most one request per rank; those of ranks that show nothing which an earlier one does not are left out."""
    found, told = [], set()
    poisoned = _first_nonfinite(seen)
    for rank in seen.ranks:
        if rank.same_as is not None:
            continue
        request = _request(seen, rank, model, poisoned)
        subjects = _subjects(request) - told
        if not subjects:
            continue
        told |= subjects
        _narrow(request, subjects)
        request.elsewhere = {m: called_in[m] for m in called_in if seen.name not in called_in[m]}
        found.append(request)
    return found


def _first_nonfinite(seen: ScenarioSeen) -> int | None:
    """The step in which NaN or inf first appears on any rank; after it all is poisoned, which needs no cause."""
    steps = [s.step for rank in seen.ranks for s in rank.steps if evidence.NONFINITE in s.use or not _is_finite(s.total)]
    return min(steps, default=None)


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _request(seen: ScenarioSeen, rank: RankSeen, model: Model, poisoned: int | None) -> Request:
    request = Request(seen.name, rank.rank, steps=[])
    names, steps = [p.name for p in model.parameters], set()
    for step in rank.steps:
        if poisoned is not None and step.step > poisoned:
            break
        missing = {names[i] for use in (step.use, *step.synced) for i, state in enumerate(use) if state == evidence.NONE}
        broken = {names[i] for i, state in enumerate(step.use) if state == evidence.NONFINITE}
        new = (missing | broken) - request.parameters.keys()
        request.parameters |= {name: MISSING for name in names if name in missing and name in new}
        request.parameters |= {name: NONFINITE for name in names if name in broken and name in new}
        if new:
            steps.add(step.step)
        if step.graph is not None and step.graph < len(rank.graphs) and not seen.custom_step:
            steps |= _ask_structure(request, rank.graphs[step.graph], step, missing, names)
        if not _is_finite(step.total):
            request.loss, steps = True, steps | {step.step}
        if step.total_differentiable is False or math.prod(step.total_shape or ()) != 1:
            request.loss, steps = True, steps | {step.step}
    for name in _zero(rank, names, model):
        if name not in request.parameters:
            request.parameters[name] = ZERO
            steps.add(rank.steps[-1].step)
    if rank.strays and rank.steps:         # one that a step makes is read as a parameter from the next step on
        steps |= {rank.steps[0].step, rank.steps[min(1, len(rank.steps) - 1)].step}
    replaced = {c.parameter: c.step for c in rank.changes if c.what in ("identity", "removed")}
    request.changes, steps = list(replaced), steps | set(replaced.values())
    fewer = _fewer(seen, rank, "forward")
    request.batches, steps = bool(fewer), steps | fewer
    for step in _fewer(seen, rank, "optimizer-step"):
        request.update = next([e.place.file, e.place.line] for other in seen.ranks for e in reversed(other.events)
                              if e.kind == "optimizer-step" and e.step == step and other is not rank and e.place)
        steps.add(step)
    request.written = _written(seen)
    steps |= {seen.differences[0].step} if request.written else set()
    request.buffers = _diverging_buffers(seen, model)
    steps |= {max(0, seen.differences[0].step - 1), seen.differences[0].step} if request.buffers else set()     # compared before the forward writes them
    _ask_rest(request, seen, rank, model)
    failing = rank.failure.step if rank.failure is not None and rank.failure.step is not None else 0
    steps |= {failing} if request.firings or request.inplace or request.spent else set()
    request.steps = sorted(steps) or [failing]
    return request


def _fewer(seen: ScenarioSeen, rank: RankSeen, kind: str) -> set[int]:
    """The first step that this rank finished with fewer calls (of the model, of the optimizer's step) than another rank made."""
    counts = [Counter(event.step for event in other.events if event.kind == kind) for other in seen.ranks]
    own = Counter(event.step for event in rank.events if event.kind == kind)
    done = {step.step for step in rank.steps if step.phase == "done"}
    fewer = {step for step in done if any(own[step] < other[step] for other in counts)}
    return {min(fewer)} if fewer and seen.custom_step else set()


def _written(seen: ScenarioSeen) -> list[str]:
    """Parameters that drift first, before any gradient differs."""
    first = seen.differences[0].step if seen.differences else None
    found = {d.what: d.names for d in seen.differences if d.step == first}
    return found.get("parameters", []) if "gradients" not in found else []


def _diverging_buffers(seen: ScenarioSeen, model: Model) -> list[str]:
    """Buffers that drift first, and are not the statistics of a BatchNorm, which its forward in train mode only writes."""
    first = [d for d in seen.differences if d.step == seen.differences[0].step]
    statistics = {m.name for m in model.modules if m.batchnorm}
    return [name for d in first for name in d.names if {d.what for d in first} == {"buffers"} and name.rpartition(".")[0] not in statistics]


def _ask_structure(request: Request, graph: Graph, step: StepSeen, missing: set[str], names: list[str]) -> set[int]:
    """Outputs that strand parameters and terms that add nothing to the total."""
    stranded = sum(1 << i for i, name in enumerate(names) if name in missing)
    outputs = [o.path for o in graph.outputs if not o.in_total and bits(o.behind) & stranded]
    terms = [t.name for t in graph.terms if not t.in_total or step.weights.get(t.name) == 0.0 or not _is_finite(step.values.get(t.name))]
    new = [o for o in outputs if o not in request.outputs] + [t for t in terms if t not in request.terms]
    arriving = {use.parameter for use in graph.uses if use.in_total}
    request.uses += [pair for use in graph.uses if not use.in_total and use.parameter in arriving
                     and (pair := [use.parameter, use.module]) not in request.uses]
    request.outputs += [o for o in outputs if o not in request.outputs]
    request.terms += [t for t in terms if t not in request.terms]
    return {step.step} if new else set()


def _zero(rank: RankSeen, names: list[str], model: Model) -> list[str]:
    """Parameters whose gradient is zero, or tiny beside its peers', at every step (see the zero-gradient rule)."""
    steps = [step.use for step in rank.steps if step.use]
    if len(steps) < 3:
        return []
    sizes = sorted(size for size, p in zip(rank.size, model.parameters, strict=False) if p.trainable and size > 0)
    median = sizes[len(sizes) // 2] if sizes else 0.0
    found = []
    for i, p in enumerate(model.parameters):
        states = {use[i] for use in steps}
        tiny = states <= {evidence.NONZERO, evidence.ZERO} and len(p.shape) >= 2 and i < len(rank.size) and rank.size[i] < TINY * median
        if (states == {evidence.ZERO} or tiny) and p.numel:
            found.append(names[i])
    return found


def _ask_rest(request: Request, seen: ScenarioSeen, rank: RankSeen, model: Model) -> None:
    request.strays = [stray.name for stray in rank.strays]
    request.ties = [tie.names for tie in rank.ties]
    request.uninitialized = [p.name for p in model.parameters if not p.initialized]
    request.mismatched = [n for m in seen.mismatches if m.what in ("names", "shapes", "dtypes", "order") for n in m.names]
    request.firings = rank.failure is not None and TWICE in rank.failure.message
    request.inplace = rank.failure is not None and INPLACE in rank.failure.message
    request.spent = rank.failure is not None and SPENT in rank.failure.message


def _subjects(request: Request) -> set[tuple[str, str]]:
    groups = {"parameter": request.parameters, "output": request.outputs, "term": request.terms, "stray": request.strays, "change": request.changes,
              "tie": [names[0] for names in request.ties], "uninitialized": request.uninitialized,
              "use": [":".join(pair) for pair in request.uses],
              "mismatch": request.mismatched[:1], "loss": ["loss"] if request.loss else [],
              "update": ["update"] if request.update else [], "written": request.written[:1],
              "buffers": request.buffers[:1],
              "spent": ["spent"] if request.spent else [],
              "inplace": ["inplace"] if request.inplace else [], "batches": ["batches"] if request.batches else [], "firings": ["firings"] if request.firings else []}
    return {(kind, name) for kind, names in groups.items() for name in names}


def _narrow(request: Request, subjects: set[tuple[str, str]]) -> None:
    """Leave out what another rank's solo run answers."""
    request.parameters = {n: kind for n, kind in request.parameters.items() if ("parameter", n) in subjects}
    request.outputs = [o for o in request.outputs if ("output", o) in subjects]
    request.terms = [t for t in request.terms if ("term", t) in subjects]
    request.uses = [u for u in request.uses if ("use", ":".join(u)) in subjects]
    request.strays = [s for s in request.strays if ("stray", s) in subjects]
    request.changes = [c for c in request.changes if ("change", c) in subjects]
    request.ties = [t for t in request.ties if ("tie", t[0]) in subjects]
    request.uninitialized = [u for u in request.uninitialized if ("uninitialized", u) in subjects]
    request.mismatched = request.mismatched if ("mismatch", (request.mismatched or [""])[0]) in subjects else []
    request.loss = request.loss and ("loss", "loss") in subjects
    request.firings = request.firings and ("firings", "firings") in subjects
    request.batches = request.batches and ("batches", "batches") in subjects
    request.update = request.update if ("update", "update") in subjects else []
    request.written = request.written if ("written", (request.written or [""])[0]) in subjects else []
    request.buffers = request.buffers if ("buffers", (request.buffers or [""])[0]) in subjects else []
    request.inplace = request.inplace and ("inplace", "inplace") in subjects
    request.spent = request.spent and ("spent", "spent") in subjects
