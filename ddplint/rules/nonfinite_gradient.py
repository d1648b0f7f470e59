"""One NaN is averaged into every rank's weights."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import ranks_and_steps
from ddplint.views import ParameterView


@rule(severity="error", checks=("gradients", "values"), specific=94, among="nonfinite")
def nonfinite_gradient(parameter: ParameterView) -> Problem | None:
    """A gradient is NaN or infinite, at the first step where any is.

    Why it matters
        The all-reduce spreads one rank's NaN to all ranks, and one optimizer step ruins all weights. The loss may
        still be finite: torch.where selects values, not gradients, and sqrt(0) has an infinite slope.

    Bad
        y = torch.where(x > 0, x.sqrt(), 0)                  # the slope of sqrt at 0 is infinite, and 0 * inf is NaN

    Good
        y = torch.where(x > 0, x.clamp(min=eps).sqrt(), 0)

    When it is fine
        Under a GradScaler single infinite steps are expected: accept it with that reason.
    """
    first = parameter.scenario.first_nonfinite
    at = [place for place in parameter.nonfinite_at if place[1] == first]
    if not at:
        return None
    cause = parameter.cause or parameter.scenario.cause("gradient:")
    return Problem(
        "the gradient is NaN or infinite, first in {steps} on {ranks}",
        cause=cause or Cause("nonfinite", "an operation on its way to the loss has no finite slope"),
        remedy="keep the argument inside the domain of the formula before it is applied (clamp, or an epsilon inside the root)",
        terms=sorted({*parameter.terms, *(cause.terms if cause else [])}),
        **ranks_and_steps(at),
        about=(f"nonfinite:{parameter.name}",),
    )
