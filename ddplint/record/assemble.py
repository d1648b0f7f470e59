"""What the ranks streamed, put together: one ScenarioSeen. Runs in the parent, imports no torch."""

import math
from typing import Any

from ddplint.evidence import Branch, Difference, Failure, Graph, Mismatch, Model, Outcome, RankSeen, ScenarioSeen
from ddplint.record.member import Transcript
from ddplint.record.said import told_failure
from ddplint.spec import Scenario, Spec

TOLERANCE = 1e-6
TIMED_OUT = ("timed out", "timeout", "time-out")
LISTS = ("changes", "strays", "ties")


def rank_seen(transcript: Transcript) -> RankSeen:
    """One rank's messages as a RankSeen."""
    seen, steps = RankSeen(transcript.rank), {}
    for kind, body in transcript.messages:
        if kind == "step":
            steps[body.step] = body             # a later message about the same step knows more
        elif kind == "graph":
            seen.graphs.append(body)
        elif kind == "event":
            seen.events.append(body)
        elif kind in LISTS:
            getattr(seen, kind).extend(item for item in body if not _told(item, getattr(seen, kind)))
        elif kind == "optimizer":
            seen.optimizer, seen.optimizer_place = body
        elif kind in ("size", "notes", "dead", "batchnorm", "layouts", "device"):
            setattr(seen, kind, body)
    seen.steps, seen.failure = list(steps.values()), told_failure(transcript)
    _drop_superseded(seen)
    _place_changes(seen)
    return seen


def _drop_superseded(seen: RankSeen) -> None:
    """Leave out the graphs of steps that a later message told more of."""
    kept = sorted({step.graph for step in seen.steps if step.graph is not None})
    seen.graphs = [seen.graphs[i] for i in kept]
    for step in seen.steps:
        step.graph = kept.index(step.graph) if step.graph is not None else None


def _told(item: Any, known: list) -> bool:
    return any(getattr(other, "name", other) == getattr(item, "name", item) for other in known)


def _place_changes(seen: RankSeen) -> None:
    """A change is noticed after a step; the event of that step which names the parameter's module has its line."""
    kinds = {"requires_grad": "requires-grad"}
    for change in seen.changes:
        kind = kinds.get(change.what, "apply")
        events = [e for e in seen.events if e.kind == kind and e.step <= change.step and _covers(e.detail, change.parameter)]
        if events and change.place is None:
            first = [e for e in events if e.step == events[-1].step]
            change.place = first[0].place


def _covers(module: str, parameter: str) -> bool:
    return module == "" or parameter == module or parameter.startswith(module + ".")


def scenario_seen(spec: Spec, name: str, transcripts: list[Transcript]) -> tuple[ScenarioSeen, Model | None]:
    """The scenario, and the model of the first rank that got as far as to build one."""
    models = [body for t in transcripts for kind, body in t.messages if kind == "model"]
    ranks = [rank_seen(t) for t in transcripts]
    scenario = spec.scenarios[name]
    seen = ScenarioSeen(name, ranks=ranks, outcome=outcome(ranks), accumulate=scenario.accumulate, mode=scenario.mode,
                        custom_step=spec.step is not None)
    seen.mismatches = _mismatches(models, transcripts)
    seen.differences = _differences(transcripts, ranks)
    seen.branches = arms(transcripts)
    seen.unknown = _unknown(spec, scenario, ranks)
    if models and ranks[0].optimizer:
        _count_groups(models[0], ranks[0])
    return seen, models[0] if models else None


def _count_groups(model: Model, rank: RankSeen) -> None:
    missing, twice = set(rank.optimizer.get("missing", ())), set(rank.optimizer.get("twice", ()))
    for p in model.parameters:
        p.groups = 0 if p.name in missing else 2 if p.name in twice else 1


def arms(transcripts: list[Transcript]) -> list[Branch] | None:
    """The arms that any rank knows of, taken where one of them took it; None where a rank was ended before it could tell."""
    kinds = [{kind for kind, _ in t.messages} for t in transcripts]
    if any("step" in sent and "branches" not in sent for sent in kinds):
        return None
    told = [body for t in transcripts for kind, body in t.messages if kind == "branches" and body is not None]
    arms: dict[tuple, Branch] = {}
    for branch in (branch for branches in told for branch in branches):
        known = arms.setdefault((branch.place.file, branch.place.line, branch.arm, branch.module), branch)
        known.taken = known.taken or branch.taken
    return list(arms.values()) if told else None


# ---------------------------------------------------------------------- what DDP did


def outcome(ranks: list[RankSeen]) -> Outcome:
    """error, hang or crashed by the ranks that left the others; those that only lost a peer are not blamed."""
    failed = [rank for rank in ranks if rank.failure is not None]
    if not failed:
        return Outcome()
    blamed = [rank for rank in failed if not rank.failure.collateral] or failed
    first = blamed[0].failure
    return Outcome(_kind([rank.failure for rank in failed]), [rank.rank for rank in blamed], first.step, first.phase,
                   first.message or f"{first.kind} {first.type}".strip())


def _kind(failures: list[Failure]) -> str:
    own = [f for f in failures if not f.collateral] or failures
    if any(f.kind in ("killed", "lost", "not run") or (f.kind == "exited" and f.type != "SystemExit") for f in own):
        return "crashed"
    if any(f.kind == "hung" for f in own) or all(_timed_out(f) for f in own):
        return "hang"
    return "error"


def _timed_out(failure: Failure) -> bool:
    return any(text in failure.message.lower() for text in TIMED_OUT)


# ---------------------------------------------------------------------- ranks against each other


def _mismatches(models: list[Model], transcripts: list[Transcript]) -> list[Mismatch]:
    """What differs between the ranks' models before the wrap, and their values after it."""
    found = []
    if models:
        first = {p.name: p for p in models[0].parameters}
        for rank, model in enumerate(models[1:], 1):
            found += _against(first, models[0], model, rank)
    values = _compared(transcripts, "values", None)
    if values:
        found.append(Mismatch("values", values, "values differ between ranks after DDP was built"))
    return found


def _against(first: dict[str, Any], reference: Model, model: Model, rank: int) -> list[Mismatch]:
    own, found = {p.name: p for p in model.parameters}, []
    if missing := sorted(first.keys() ^ own.keys()):
        found.append(Mismatch("names", missing, f"rank 0 has {len(first)} parameters, rank {rank} has {len(own)}"))
    for what, fact in (("shapes", "shape"), ("dtypes", "dtype"), ("requires_grad", "trainable")):
        names = [n for n in first.keys() & own.keys() if getattr(first[n], fact) != getattr(own[n], fact)]
        if names := sorted(names):
            a, b = getattr(first[names[0]], fact), getattr(own[names[0]], fact)
            found.append(Mismatch(what, names, f"{names[0]} is {a} on rank 0 and {b} on rank {rank}"))
    if not missing and list(first) != list(own):
        moved = [a for a, b in zip(first, own, strict=True) if a != b]
        found.append(Mismatch("order", moved, f"parameters are registered in another order on rank {rank}"))
    buffers = reference.buffers.keys() ^ model.buffers.keys()
    if different := sorted(buffers | {n for n, s in model.buffers.items() if reference.buffers.get(n, s) != s}):
        found.append(Mismatch("buffers", different, f"buffers of rank {rank} differ from rank 0's"))
    return found


def _differences(transcripts: list[Transcript], ranks: list[RankSeen]) -> list[Difference]:
    """Tensors that differ between ranks where DDP should have made them equal; not judged under Join."""
    if any(event.kind == "join" for rank in ranks for event in rank.events):
        return []
    labels = dict.fromkeys((body[0], body[1]) for t in transcripts for kind, body in t.messages if kind == "signatures")
    found = [Difference(what.split(".")[0], step, names) for what, step in labels
             if step is not None and (names := _compared(transcripts, what, step))]
    return sorted(found, key=lambda d: d.step)


def _compared(transcripts: list[Transcript], what: str, step: int | None) -> list[str]:
    tables = [body[2] for t in transcripts for kind, body in t.messages
              if kind == "signatures" and body[:2] == (what, step)]
    if len(tables) < len(transcripts) or len(tables) < 2:
        return []
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if differ([table.get(name) for table in tables])]


def differ(values: list[float | None]) -> bool:
    """Whether the ranks' signatures of one tensor are not all the same, rounding aside."""
    first, *others = values
    return any(not _same(first, other) for other in others)


def _same(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


# ---------------------------------------------------------------------- what DDP's failure cut off

UNFINISHED = "Expected to have finished reduction"
CHANGED = "training graph has changed"


def was_cut_off(seen: ScenarioSeen) -> bool:
    """Whether DDP ended the scenario because gradients were missing: the later steps may show more of them."""
    return any(map(_refused, seen.ranks))


def _refused(rank: RankSeen) -> bool:
    return rank.failure is not None and any(text in rank.failure.message for text in (UNFINISHED, CHANGED))


def add_foreseen(rank: RankSeen, transcript: Transcript) -> None:
    """Take over the steps after the last one that the rank saw to its end under DDP.

    In a loop of the user's own, or under accumulation, DDP may refuse the second forward of a step.
    """
    halfway = rank.failure.step if _refused(rank) else None
    foreseen, known = rank_seen(transcript), {step.step for step in rank.steps if step.use and step.step != halfway}
    for step in foreseen.steps:
        if step.use and step.step not in known:
            rank.steps = [s for s in rank.steps if s.step != step.step] + [step]
            step.graph = _add_graph(rank, foreseen.graphs[step.graph]) if step.graph is not None else None
            step.phase = "foreseen"
    rank.steps.sort(key=lambda step: step.step)
    rank.size = [max(pair) for pair in zip(rank.size, foreseen.size, strict=False)] or foreseen.size


def _add_graph(rank: RankSeen, graph: Graph) -> int:
    if graph not in rank.graphs:
        rank.graphs.append(graph)
    return rank.graphs.index(graph)


# ---------------------------------------------------------------------- what could not be seen


def _unknown(spec: Spec, scenario: Scenario, ranks: list[RankSeen]) -> dict[str, str]:
    """Aspect -> why nothing is known of it in this scenario."""
    unknown = {}
    if spec.step is not None:
        unknown["terms"] = "the loop body is the user's own step, which shows no terms"
    if scenario.mode == "eval":
        unknown["activations"] = "the model ran in eval mode"
    if len(ranks) < 2:
        unknown["ranks"] = "one rank has nothing to be compared with"
    if not any(step.use for rank in ranks for step in rank.steps):
        unknown["gradients"] = _why_no_step(ranks)
    return unknown


def _why_no_step(ranks: list[RankSeen]) -> str:
    failure = next((r.failure for r in ranks if r.failure is not None and not r.failure.collateral), None)
    if failure is None:
        return "no backward ended"
    where = failure.phase if failure.step is None else f"{failure.phase} of step {failure.step}"
    return f"no backward ended: a rank {failure.kind} in {where}"

