"""One rank runs out of batches."""

from ddplint.evidence import Cause, Event
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import failure_place, numbered
from ddplint.views import ScenarioView


@rule(severity="error", checks=("ranks", "steps"), specific=33)
def uneven_inputs(scenario: ScenarioView) -> list[Problem]:
    """The ranks have different numbers of batches, without Join.

    Why it matters
        The rank with more batches waits in its next all-reduce for a rank that has finished: the job hangs at the end of
        the epoch, until the time-out.

    Bad
        for batch in loader:                                 # 5 batches on rank 0, 3 on rank 1
            train_step(ddp, batch)

    Good
        with ddp.join():
            for batch in loader:
                train_step(ddp, batch)

    When it is fine
        Under DDP's join() context, or with a sampler that pads or drops the last batches.
    """
    if scenario.joined:
        return []
    return _ended_early(scenario) or _fewer_forwards(scenario)


def _ended_early(scenario: ScenarioView) -> list[Problem]:
    """A loader that ended on some ranks only."""
    ended = scenario.failed_as.get("loader-ended", [])
    steps = {failure.step for _, failure in ended}
    if not ended or (len(ended) == len(scenario.ranks) and len(steps) == 1):
        return []
    first = min(step for step in steps if step is not None)
    ranks = [rank for rank, failure in ended if failure.step == first]
    return [_problem(scenario, ranks, first, f"{numbered('rank', ranks)} had no batch for step {first}, others did",
                     Cause("loader-ended", ended[0][1].message, failure_place(ended[0][1])), ("failure:loader-ended",))]


def _fewer_forwards(scenario: ScenarioView) -> list[Problem]:
    """Within one step of the user's own loop, a rank went through the wrapper less often."""
    for step in sorted({step for _, step in scenario.steps_begun}):
        done = {rank.rank for rank in scenario.ranks if scenario.step((rank.rank, step)).phase == "done"}
        counts = {rank.rank: len(_batches(scenario, rank.rank, step)) for rank in scenario.ranks
                  if (rank.rank, step) in scenario.steps_begun}
        most = max(counts.values(), default=0)
        fewer = [rank for rank, number in counts.items() if number < most and rank in done]
        if fewer and _own_ends(scenario):
            text = ", ".join(f"{number} on rank {rank}" for rank, number in counts.items())
            more = next(rank for rank, number in counts.items() if number == most)
            place = _batches(scenario, more, step)[-1].place
            return [_problem(scenario, fewer, step, f"batches in step {step}: {text}",
                             Cause("uneven", "the loop runs once for each of the rank's own batches", place), ())]
    return []


def _batches(scenario: ScenarioView, rank: int, step: int) -> list[Event]:
    """The forwards that train: a validation is none of them."""
    return [event for _, event in scenario.events("forward", rank=rank, step=step) if event.detail != "no-grad"]


def _own_ends(scenario: ScenarioView) -> bool:
    """Whether no rank ended for a reason of its own."""
    return set(scenario.failed_as) <= {"hang", "collateral", "collective"}


def _problem(scenario: ScenarioView, ranks: list[int], step: int, message: str, cause: Cause, covers: tuple[str, ...]) -> Problem:
    return Problem(
        message,
        cause=scenario.cause("batches:") or cause,
        remedy="run the loop under ddp.join(), or give every rank the same number of batches (drop_last, a padding sampler)",
        ranks=ranks,
        steps=[step],
        about=("uneven",),
        covers=("sequence", "failure:hang", "failure:collective", "failure:collateral", "desync", *covers),
    )
