"""One NaN is averaged into every rank's weights."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import died_of_it, ranks_and_steps
from ddplint.views import ParameterView

DOMAIN = "keep the argument inside the domain of the formula before it is applied (clamp, or an epsilon inside the root)"
FINDS_ITS_SCALE = "nothing, where it is the first steps: the GradScaler leaves them out until its scale fits"


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
        A GradScaler leaves single steps out until it has found its scale: there it is a note.
    """
    first = parameter.scenario.first_nonfinite
    at = [place for place in parameter.nonfinite_at if place[1] == first]
    if not at:
        return None
    cause = parameter.cause or parameter.scenario.cause("gradient:")
    severity = _severity_under_a_scaler(parameter)
    return Problem(
        "the gradient is NaN or infinite, first in {steps} on {ranks}",
        cause=cause or Cause("nonfinite", "an operation on its way to the loss has no finite slope"),
        remedy=FINDS_ITS_SCALE if severity == "note" else DOMAIN,
        severity=severity,
        terms=cause.terms if cause and cause.terms else parameter.terms,
        **ranks_and_steps(at),
        about=(f"nonfinite:{parameter.name}",),
        covers=died_of_it(parameter.scenario, first),
    )


def _severity_under_a_scaler(parameter: ParameterView) -> str | None:
    """A GradScaler left out each step in which it is not finite: a note, or a warning where no step was made."""
    scenario = parameter.scenario
    skipped = {(rank, event.step) for rank, event in scenario.events("skipped")}
    if not skipped.issuperset(parameter.nonfinite_at):
        return None
    return "note" if scenario.events("optimizer-step") else "warning"
