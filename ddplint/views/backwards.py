"""What the backwards of a scenario show: one that is left out, one that runs again after the same forward."""

from collections.abc import Iterator

from ddplint.evidence import Cause, Event
from ddplint.views.scenario import ScenarioView


def backward_left_out(scenario: ScenarioView) -> Cause | None:
    """Where a rank leaves its backward out, if that line was found: what it lacks then says nothing about use."""
    return next((cause for cause in scenario.seen.causes.values() if cause.kind == "backward-left-out"), None)


def backwards_again(scenario: ScenarioView, *, rank: int | None = None, step: int | None = None) -> Iterator[Event]:
    """Backwards that no wrapped forward with gradients stands before, since the last backward of the step."""
    last: dict[tuple[int, int], str] = {}
    for of, event in scenario.events("forward", "backward", rank=rank, step=step):
        if event.kind == last.get((of, event.step)) == "backward":
            yield event
        if event.detail != "no-grad":
            last[of, event.step] = event.kind
