"""Code that no scenario has run."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import ArmView


@rule(severity="warning", checks="branches", specific=40)
def untaken_branch(arm: ArmView) -> Problem | None:
    """An arm of the model's or the loss's own source that no scenario takes.

    Why it matters
        What the lint has not run it has not checked: the arm that only the 10,000th batch takes is where a job dies.

    Bad
        if boxes.numel() == 0:                               # no scenario has a batch without boxes
            return self.empty(features)

    Good
        Add a scenario that takes the arm: scenario: {no_boxes: {batch: ...}}

    When it is fine
        Arms for inference, export or debugging: accept them by their line.
    """
    if arm.taken_in or arm.lost_in:
        return None
    return Problem(
        f"the arm '{arm.arm}' is taken in none of {count(len(arm.scenarios), 'scenario')}",
        cause=Cause("untaken-branch", "no scenario feeds what would lead here", arm.place),
        remedy="add a scenario that takes it, or accept it",
        modules=[arm.module] if arm.module else [],
        scenarios=arm.scenarios,
        about=(f"line:{arm.name}",),
    )
