"""Is it the gradient of this loss at all?"""

from ddplint.evidence import Cause, Derivative
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="off", checks="derivatives", specific=25)
def gradient_mismatch(scenario: ScenarioView, *, tolerance: float = 1e-4) -> list[Problem]:
    """A term's analytic gradient differs from its numerical derivative, in float64 along random directions.

    Why it matters
        A custom autograd function, a straight-through trick or an in-place change can give a gradient that belongs to
        another function. Every rank agrees on it, so nothing else tells.

    Bad
        def backward(ctx, grad):
            return grad * ctx.x                              # the derivative of x ** 2 is 2 * x

    Good
        def backward(ctx, grad):
            return grad * 2 * ctx.x

    When it is fine
        Straight-through estimators, surrogate gradients and gradient reversal differ on purpose: accept them.

        Off by default, for it runs the model many times. Option: ``tolerance``, relative to the larger of the two.
    """
    return [_problem(scenario, found) for found in scenario.seen.derivatives or () if not _close(found, tolerance)]


def _close(found: Derivative, tolerance: float) -> bool:
    scale = max(abs(found.analytic), abs(found.numeric), 1e-12)
    return abs(found.analytic - found.numeric) <= tolerance * scale


def _problem(scenario: ScenarioView, found: Derivative) -> Problem:
    return Problem(
        f"term '{found.term}' changes by {found.numeric:.4g} along the direction, its gradient says {found.analytic:.4g}",
        cause=scenario.cause(f"derivative:{found.term}") or Cause(
            "gradient-mismatch", "backward computes the slope of another function", found.place),
        remedy="compare the custom backward with torch.autograd.gradcheck; look for in-place changes and straight-through parts",
        parameters=list(found.parameters),
        terms=[found.term],
        about=(f"derivative:{found.term}:{','.join(found.parameters)}",),
    )
