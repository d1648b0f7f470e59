"""Clipping what was not averaged yet."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="warning", checks="clips", specific=24)
def clip_before_sync(scenario: ScenarioView) -> list[Problem]:
    """Gradients are clipped inside no_sync, before they are reduced.

    Why it matters
        What is clipped are local, half-accumulated gradients, by a norm that differs between ranks; earlier micro-batches
        are scaled down again and again. The update is not the clipped mean.

    Bad
        for i, micro in enumerate(batches):
            with nullcontext() if i == last else ddp.no_sync():
                loss(micro).backward()
            clip_grad_norm_(ddp.parameters(), 1.0)           # every time

    Good
        clip_grad_norm_(ddp.parameters(), 1.0)               # once, after the last backward
        optimizer.step()

    When it is fine
        Never for a norm; clipping by value per micro-batch is a choice: accept it.
    """
    clips = [(rank, event) for rank, event in scenario.events("clip") if event.detail == "no-sync"]
    if not clips:
        return []
    return [Problem(
        "gradients are clipped before they are reduced in {steps}",
        cause=scenario.cause("clip:") or Cause("clip", "this runs after a backward under no_sync", clips[0][1].place, "clip"),
        remedy="clip once, after the last backward of the window and before optimizer.step()",
        ranks=sorted({rank for rank, _ in clips}),
        steps=sorted({event.step for _, event in clips}),
        about=("clip",),
    )]
