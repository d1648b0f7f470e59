"""The gradient on its way through the depth."""

import itertools
import re

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="warning", checks="sizes", specific=28)
def gradient_flow(scenario: ScenarioView, *, factor: float = 1e4, depths: int = 4) -> list[Problem]:
    """The gradient vanishes or explodes between the first and the last of a stack of equal layers.

    Why it matters
        The first layers train thousands of times slower (or faster) than the last: the model is as deep on paper only.

    Bad
        for layer in self.layers:
            h = torch.sigmoid(layer(h))                      # 20 times

    Good
        for layer in self.layers:
            h = h + torch.relu(layer(self.norm(h)))

    When it is fine
        Layers that are scaled apart on purpose.

        Options: ``factor``, how far the largest gradients of a stack may lie apart; ``depths``, how many layers make a stack.
    """
    problems = []
    for stack in scenario.stacks(depths):
        sizes = [size for _, size in stack]
        low, high = min(sizes), max(sizes)
        if low > 0 and high / low > factor and _steady(sizes):
            problems.append(_problem(scenario, stack, high / low))
    return problems


def _steady(sizes: list[float]) -> bool:
    """Whether the sizes rise or fall along the depth, rather than jump at one layer."""
    steps = [b > a for a, b in itertools.pairwise(sizes)]
    return max(sum(steps), len(steps) - sum(steps)) >= 0.75 * len(steps)


def _problem(scenario: ScenarioView, stack: list[tuple[str, float]], ratio: float) -> Problem:
    (first, low), (last, high) = stack[0], stack[-1]
    what = "vanishes towards the input" if low < high else "explodes towards the input"
    module = re.sub(r"\.\d+\..*", "", first)
    return Problem(
        f"the gradient {what}: {low:.1e} at {first}, {high:.1e} at {last}",
        cause=scenario.cause(f"flow:{module}") or Cause("flow", f"it changes by a factor of {ratio:.0e} over {len(stack)} layers",
                                                        module=module),
        remedy="residual connections, a normalisation in every layer, another initialisation or activation",
        modules=[module],
        about=(f"flow:{module}",),
    )
