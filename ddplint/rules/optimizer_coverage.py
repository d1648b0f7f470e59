"""A parameter that the optimizer does not hold, or holds twice."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView

SAYS = {
    "missing": ("trainable, but in no group of the optimizer", "add it to a group, or freeze it before DDP is built"),
    "foreign": ("in a group of the optimizer, but no parameter of the model", "build the optimizer from the model's own parameters"),
    "twice": ("in two groups of the optimizer", "put each parameter into one group"),
}


@rule(severity="error", checks="optimizer", specific=36)
def optimizer_coverage(scenario: ScenarioView) -> list[Problem]:
    """A trainable parameter is in no optimizer group, in two, or a group holds what is not the model's.

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
    return [Problem(
        SAYS[what][0],
        cause=scenario.cause("optimizer:") or Cause("optimizer", "the groups of the optimizer are built here" if place
                                                    else "the groups of the optimizer leave it out", place),
        remedy=SAYS[what][1],
        parameters=names,
        about=tuple(f"{'untrained' if what == 'missing' else 'optimizer'}:{name}" for name in names),
    ) for what, names in found.items()]
