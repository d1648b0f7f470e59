"""An activation checkpoint that does not go with DDP, or with itself."""

from ddplint.evidence import Cause, Event
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import ScenarioView
from ddplint.views.failures import named_parameters

NOTHING_RECORDED = "None of the inputs have requires_grad=True"


@rule(severity="error", checks="checkpoints", specific=78)
def checkpoint_conflict(scenario: ScenarioView) -> list[Problem]:
    """A reentrant activation checkpoint is combined with what DDP cannot do, or one recomputes something else.

    Why it matters
        use_reentrant=True runs a second backward inside the first. Where no input of the checkpoint needs a gradient,
        nothing inside is recorded and its parameters do not train. Where a layer stands in two checkpoints, its
        gradient is complete twice: DDP raises "mark a variable ready only once", or averages only the first part. With
        find_unused_parameters=True it always raises. What a checkpoint runs again in backward must be what it ran in forward.

    Bad
        hidden = checkpoint(layer, embeddings, use_reentrant=True)           # the embeddings are frozen

    Good
        hidden = checkpoint(layer, embeddings, use_reentrant=False)

    When it is fine
        A reentrant checkpoint around a layer that occurs once, on inputs that need gradients, without
        find_unused_parameters; or static_graph=True.
    """
    events = [e for _, e in scenario.events("checkpoint") if e.detail == "reentrant"]
    return [*_unrecorded(scenario, events), *_ready_twice(scenario, events), *_recomputed(scenario)]


def _unrecorded(scenario: ScenarioView, events: list[Event]) -> list[Problem]:
    """Parameters inside a checkpoint whose inputs need no gradient."""
    groups: dict[tuple, list[str]] = {}
    causes: dict[tuple, Cause] = {}
    silent = bool(events) and bool(scenario.notes(NOTHING_RECORDED))
    for name in scenario.names_of(scenario.use.unused):
        cause = scenario.cause(f"parameter:{name}")
        if cause is None and silent and scenario.called(name.rpartition(".")[0]):
            cause = Cause("checkpoint", "no input of the reentrant checkpoint needs a gradient, so nothing inside is recorded",
                          events[0].place, "checkpoint")
        if cause is not None and cause.kind == "checkpoint":
            key = (cause.place.file, cause.place.line) if cause.place else ()
            causes.setdefault(key, cause)
            groups.setdefault(key, []).append(name)
    return [Problem(
        "no gradient: a reentrant checkpoint around it records nothing",
        cause=causes[key],
        remedy="pass use_reentrant=False, or let an input of the checkpoint require a gradient",
        parameters=names,
        ranks=[rank.rank for rank in scenario.ranks],
        about=tuple(f"parameter:{name}" for name in names),
        covers=("failure:unfinished", "desync", "flag-needed", *(f"untrained:{name}" for name in names)),
    ) for key, names in groups.items()]


def _ready_twice(scenario: ScenarioView, events: list[Event]) -> list[Problem]:
    """Parameters whose gradient is complete more than once in one backward."""
    failed = scenario.failed_as.get("ready-twice", [])
    twice = {} if scenario.static else scenario.fired_twice()
    told = scenario.cause("failure:")
    if not events or not (failed or twice) or (told is not None and told.kind != "checkpoint"):
        return []
    names = list(dict.fromkeys([*twice, *(n for _, f in failed for n in named_parameters(f))]))
    if told is not None:
        why = told.text
    elif scenario.finds_unused and not twice:
        why = "find_unused_parameters=True does not go with reentrant checkpoints"
    else:
        why = "what it holds takes part in several checkpoints, so its gradient is complete several times"
    return [Problem(
        f"a reentrant checkpoint makes {count(len(names), 'parameter') if names else 'a parameter'} ready more than once",
        cause=scenario.cause(*(f"parameter:{name}" for name in names))
        or Cause("checkpoint", why, events[0].place, "checkpoint"),
        remedy="pass use_reentrant=False, or set ddp.static_graph=true",
        parameters=names,
        ranks=sorted({rank for rank, _ in failed} or {rank.rank for rank in scenario.ranks}),
        steps=sorted({f.step for _, f in failed if f.step is not None}),
        about=("ready-twice", *(f"parameter:{name}" for name in names)),
        covers=("failure:ready-twice", "desync"),
    )]


def _recomputed(scenario: ScenarioView) -> list[Problem]:
    """Torch's own complaint that the recomputation in backward saved other tensors than the forward."""
    failed = scenario.failed_as.get("recomputed", [])
    if not failed:
        return []
    places = list({(e.place.file, e.place.line): e.place for _, e in scenario.events("checkpoint") if e.place}.values())
    also = [f"or the checkpoint at {place.file}:{place.line}" for place in places[1:4]]
    return [Problem(
        "what a checkpoint runs again in backward is not what it ran in forward, in {steps} on {ranks}",
        cause=Cause("recomputed", "the part that is checkpointed here takes another way when it is run again", places[0] if places else None, "checkpoint", also=also),
        remedy="let nothing in it depend on what a call changes: a counter, a cache, a random draw outside of torch, the training mode",
        ranks=sorted({rank for rank, _ in failed}),
        steps=sorted({f.step for _, f in failed if f.step is not None}),
        about=("recomputed",),
        covers=("failure:recomputed", "failure:hang", "failure:collateral", "failure:collective", "sequence"),
    )]
