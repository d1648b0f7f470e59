"""A gradient that is there, and moves nothing."""

import math

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import numbered
from ddplint.views import ParameterView


@rule(severity="warning", checks=("gradients", "values"), specific=35, among="faint")
def zero_gradient(parameter: ParameterView, *, steps: int = 3, relative: float = 1e-6) -> Problem | None:
    """A parameter's gradient is zero at every one of at least three steps.

    Why it matters
        DDP is content: the gradient is there. But the parameter never moves: its loss has the weight 0, both factors
        of a product start at zero, or a weight is normalised to one.

    Bad
        self.lora_A = nn.Parameter(torch.zeros(r, d))        # and lora_B is zero, too
        self.lora_B = nn.Parameter(torch.zeros(d, r))

    Good
        self.lora_A = nn.Parameter(torch.randn(r, d) / d ** 0.5)
        self.lora_B = nn.Parameter(torch.zeros(d, r))

    When it is fine
        Zero in the first steps is normal behind zero-initialised adapters, gammas and gates. A bias in front of a
        softmax or a normalisation has no influence; its gradient is rounding noise, and no finding.

        Options: ``steps``, how many steps must have been seen; ``relative``, the size below which a matrix counts as
        zero, over the median of all parameters' largest gradients.
    """
    # Behind a loss that is NaN, a zero says nothing.
    seen = sorted({at[1] for at in parameter.used_at if math.isfinite(parameter.scenario.step(at).total or 0.0)})
    if not parameter.trainable or not parameter.numel or len(seen) < steps or parameter.nonfinite_at or not _is_zero(parameter, relative):
        return None
    exact, cause = parameter.always_zero, parameter.cause
    if not exact and cause is not None and cause.kind == "scaled-down":
        return None         # small, but no noise: a factor on the way is (LayerScale begins with 1e-6)
    unsure = not exact and cause is None and not parameter.scenario.run.causes_sought       # run.causes=false: it may be scaled down
    small = "" if exact else f" ({parameter.relative_size:.0e} of the median)"
    return Problem(
        f"the gradient is {'zero' if exact else 'tiny' if unsure else 'rounding noise'} at every one of {len(seen)} steps",
        severity="note" if unsure else None,
        cause=cause or Cause("unknown", "its gradient is zero wherever it was measured" if exact
                                       else f"its largest gradient is far below all others{small}"),
        remedy=f"look at {numbered('step', seen)}: a weight of 0, zero-initialised factors, or a constant; "
        "freeze it if it is not meant to train",
        terms=parameter.terms,
        ranks=parameter.used_on,
        steps=seen,
    )


def _is_zero(parameter: ParameterView, relative: float) -> bool:
    """Exactly zero; a matrix also far below its peers. A vector only where its whole module is exactly zero."""
    if parameter.ndim < 2:
        return parameter.always_zero and all(other.always_zero for other in parameter.siblings if other.used_at)
    if parameter.always_zero:
        return True
    size = parameter.relative_size
    return size is not None and size < relative
