"""One rank waits where another never comes."""

from itertools import zip_longest

from ddplint.evidence import Cause, Event
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import listed, numbered
from ddplint.views import ScenarioView, backward_left_out

SYNCHRONISING = ("backward", "collective")
ALWAYS = "let every rank run the same collectives in the same order: same keys, same backwards, no early continue"
BROADCASTS = "call model.module where one rank works alone (validation, logging), or let every rank call the wrapper"


@rule(severity="error", checks=("ranks", "steps"), specific=32)
def collective_mismatch(scenario: ScenarioView) -> list[Problem]:
    """The ranks enter different collectives, or one enters fewer.

    Why it matters
        A collective waits for all ranks. One rank that skips an all_reduce or a backward makes the others wait until
        the time-out, or pairs their next collective with the wrong one; the rank that is blamed is often innocent.

    Bad
        for name, value in losses.items():                   # a rank without positives lacks one key
            dist.all_reduce(value)

    Good
        for name in NAMES:                                   # the same keys on every rank
            dist.all_reduce(losses.get(name, zero))

    When it is fine
        Collectives in groups of some ranks only (tensor or pipeline parallelism): accept it with that reason.
    """
    if scenario.joined or scenario.outcome.outcome == "ok" or any(name not in ("collateral", "hang", "collective") for name in scenario.failed_as):
        return []
    for step in sorted({step for _, step in scenario.steps_begun}):
        found = _first_difference(scenario, step)
        if found:
            return [_problem(scenario, step, *found)]
    return []


def _sequence(scenario: ScenarioView, rank: int, step: int) -> list[Event]:
    """A forward is one of them where DDP broadcasts buffers at its start."""
    broadcasts = scenario.model.buffers and scenario.ddp.get("broadcast_buffers", True)
    kinds = (*SYNCHRONISING, "forward") if broadcasts else SYNCHRONISING
    return [event for _, event in scenario.events(*kinds, rank=rank, step=step) if event.detail != "no-sync"]


def _named(event: Event) -> str:
    return "the wrapper's forward" if event.kind == "forward" else event.detail or event.kind


def _first_difference(scenario: ScenarioView, step: int) -> tuple[list[int], list[int], Event | None, Event] | None:
    """(the ranks that left, the others, what the first did instead, what the others entered)."""
    sequences = {rank.rank: _sequence(scenario, rank.rank, step) for rank in scenario.ranks
                 if (rank.rank, step) in scenario.steps_begun}
    finished = {rank: scenario.step((rank, step)).phase == "done" for rank in sequences}
    for column in zip_longest(*sequences.values()):
        entered = dict(zip(sequences, column, strict=True))
        keys = {rank: (event.kind, event.detail) if event else None for rank, event in entered.items()
                if event or finished[rank]}
        if len(set(keys.values())) > 1:
            return _sides(entered, keys)
    return None


def _sides(entered: dict[int, Event | None], keys: dict[int, tuple | None]) -> tuple:
    common = max(set(keys.values()) - {None}, key=lambda key: (sum(k == key for k in keys.values()), str(key)))
    left = [rank for rank, key in keys.items() if key != common]
    others = [rank for rank, key in keys.items() if key == common]
    return left, others, entered[left[0]], entered[others[0]]


def _problem(scenario: ScenarioView, step: int, left: list[int], others: list[int], instead: Event | None,
             entered: Event) -> Problem:
    what, alone = _named(entered), entered.detail == "no-grad"
    turned = f"entered {_named(instead)} instead" if instead else "never did"
    uneven = _uneven_outputs(scenario, step, left)
    also = [f"{numbered('rank', left)} at {instead.place.file}:{instead.place.line}"] if instead and instead.place else []
    lacking = f"; output {listed(uneven)} is there on some ranks only" if uneven else ""
    text = f"{numbered('rank', others)} entered {what} here, {numbered('rank', left)} {turned}{lacking}"
    return Problem(
        f"{numbered('rank', left)} left the others in step {step}: {numbered('rank', others)} entered {what}, "
        f"{numbered('rank', left)} {turned}",
        cause=scenario.cause("collective:") or (backward_left_out(scenario) if entered.kind == "backward" else None)
        or scenario.cause("ranks:") or backward_left_out(scenario) or Cause("collective-mismatch", text, entered.place, what, also=also),
        remedy=BROADCASTS if alone else ALWAYS,
        outputs=uneven,
        ranks=left,
        steps=[step],
        about=("sequence",),
        covers=("failure:collective", "failure:hang", "failure:collateral", "failure:unfinished", "desync", "flag-needed"),
    )


def _uneven_outputs(scenario: ScenarioView, step: int, left: list[int]) -> list[str]:
    """The outputs that stand on the ranks that left only, or everywhere else."""
    graphs = scenario.graphs.at
    here = [set(graphs[rank, step].outputs) for rank in left if (rank, step) in graphs]
    known = [set(reach.outputs) for (rank, s), reach in graphs.items() if s == step and rank not in left]
    known = known or [set(reach.outputs) for (_, s), reach in graphs.items() if s != step]      # the others died in this step
    return sorted({name for own in here for other in known for name in own ^ other})
