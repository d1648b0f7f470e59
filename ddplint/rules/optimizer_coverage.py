"""A parameter that the optimizer does not hold, holds twice, or steps without its gradient."""

from ddplint.evidence import NONZERO, Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import numbered
from ddplint.views import ScenarioView

SAYS = {
    "missing": ("trainable, but in no group of the optimizer", "add it to a group, or freeze it before DDP is built"),
    "foreign": ("in a group of the optimizer, but no parameter of the model", "build the optimizer from the model's own parameters"),
    "twice": ("in two groups of the optimizer", "put each parameter into one group"),
}

CLEARED = "the gradients are cleared here, after backward and before the optimizer's step"
GONE = "the gradients that backward gave are gone when this runs"


@rule(severity="error", checks="optimizer", specific=36)
def optimizer_coverage(scenario: ScenarioView) -> list[Problem]:
    """A trainable parameter is in no optimizer group or in two, or the optimizer steps without its gradient.

    Why it matters
        It gets synchronised gradients in every step and never moves. The loss falls all the same, a little less.

    Bad
        groups = [{"params": [p for n, p in model.named_parameters() if "bert" in n]}]

    Good
        rest = [p for n, p in model.named_parameters() if "bert" not in n]
        groups.append({"params": rest, "lr": 5e-1})

    When it is fine
        Several optimizers, each with its part: step them all in the lint's own ``step``, or accept it.
    """
    found: dict[str, list[str]] = {}
    place = None
    for rank in scenario.ranks:
        place = place or rank.optimizer_place
        for what, names in rank.optimizer.items():
            if names and what in SAYS:
                found.setdefault(what, list(names))
    return [*_cleared(scenario), *_never_stepped(scenario), *(Problem(
        SAYS[what][0],
        cause=scenario.cause("optimizer:") or Cause("optimizer", "the groups of the optimizer are built here" if place
                                                    else "the groups of the optimizer leave it out", place),
        remedy=SAYS[what][1],
        parameters=names,
        about=tuple(f"{'untrained' if what == 'missing' else 'optimizer'}:{name}" for name in names),
    ) for what, names in found.items())]


def _cleared(scenario: ScenarioView) -> list[Problem]:
    """In the user's own loop, an optimizer that steps when the gradients of the last backward are gone."""
    events = scenario.events("cleared")
    if not events:
        return []
    steps = sorted({event.step for _, event in events})
    names = _with_gradient(scenario, steps)
    return [Problem(
        f"the gradient is gone when the optimizer steps, in {numbered('step', steps)}",
        cause=Cause("cleared", CLEARED if events[0][1].detail else GONE, events[0][1].place, events[0][1].detail or None),
        remedy="clear the gradients before backward, or after the optimizer's step",
        parameters=names, ranks=sorted({rank for rank, _ in events}), steps=steps,
        about=tuple(f"untrained:{name}" for name in names),
    )]


def _never_stepped(scenario: ScenarioView) -> list[Problem]:
    """In the user's own loop, gradients that no optimizer uses; it may be that more steps are accumulated than were run."""
    if not scenario.seen.custom_step or scenario.failures or scenario.events("optimizer-step", "skipped") \
            or not (names := _with_gradient(scenario, steps := sorted({step for _, step in scenario.use.uses}))):
        return []
    return [Problem(
        f"no optimizer steps in {numbered('step', steps)}",
        cause=Cause("no-step", "gradients come, and no optimizer uses them"),
        remedy="call optimizer.step(); where it is called every so many steps, set run.steps so that it is reached",
        severity="note", parameters=names, steps=steps, about=("optimizer:step",),
    )]


def _with_gradient(scenario: ScenarioView, steps: list[int]) -> list[str]:
    """The parameters that got a gradient in one of these steps."""
    uses = [use for (_, step), use in scenario.use.uses.items() if step in steps]
    return scenario.names_of(i for i in range(scenario.use.count) if any(use[i] == NONZERO for use in uses))
