"""A module whose output says nothing."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView

SAYS = {"zero": "its output is zero everywhere at every step", "saturated": "its output is saturated everywhere at every step"}


@rule(severity="warning", checks="activations", specific=30)
def dead_activation(scenario: ScenarioView) -> list[Problem]:
    """A module's output is zero or saturated everywhere, at every step.

    Why it matters
        Behind a dead ReLU or a saturated sigmoid the gradient is zero: DDP reduces it faithfully, and nothing moves.

    Bad
        self.act = nn.ReLU()                                 # after a layer whose bias is -100

    Good
        A sane initialisation, a normalisation in front, or an activation with a slope (LeakyReLU, GELU).

    When it is fine
        Gates that are closed at the start on purpose: accept them.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for rank in scenario.ranks:
        for module, state in (rank.dead or {}).items():
            found.setdefault(state, {}).setdefault(module, []).append(rank.rank)
    return [Problem(
        SAYS.get(state, f"its output is {state} everywhere at every step"),
        cause=scenario.cause(f"module:{module}") or Cause("dead", f"all values are {state}", module=module),
        remedy="look at what feeds it: its input's scale, its bias, its initialisation",
        modules=[module],
        ranks=ranks,
        about=(f"module:{module}",),
    ) for state, modules in found.items() for module, ranks in modules.items() if len(ranks) == len(scenario.ranks)]
