"""Without the flag DDP waits for all gradients."""

from ddplint.rules.base import Problem, rule
from ddplint.rules.words import ranks_and_steps, unfinished
from ddplint.views import ParameterView


@rule(severity="error", checks="gradients", specific=20, among="lacking")
def find_unused_parameters_needed(parameter: ParameterView) -> Problem | None:
    """A parameter is used only now and then, and find_unused_parameters is off.

    Why it matters
        The first step in which it lacks a gradient makes the next forward raise, on that rank.

    Bad
        DistributedDataParallel(model)                       # with LayerDrop, routing or optional inputs

    Good
        DistributedDataParallel(model, find_unused_parameters=True)

    When it is fine
        Never without the flag; computing the part in every step (times 0) is the alternative, and often the faster one.
    """
    scenario = parameter.scenario
    missing = parameter.missing_at or parameter.unreduced_at
    if scenario.finds_unused or not missing or not (parameter.used_at or parameter.used_in):
        return None
    return Problem(
        "used only now and then, while find_unused_parameters is off",
        cause=parameter.cause,
        remedy="set ddp.find_unused_parameters=true",
        **ranks_and_steps(missing),
        about=("flag-needed",),
        covers=unfinished(scenario),
    )
