"""A loss that is no number."""

import math

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import died_of_it, listed
from ddplint.views import LossView

REMEDIES = {
    "eps-underflow": "give the optimizer an eps that the dtype can hold (1e-4 in float16), or keep the weights in float32 (autocast computes in half precision)",
    "update-overflow": "lower the learning rate, warm it up, clip the gradients, or keep the weights in float32",
}


@rule(severity="error", checks=("loss", "values"), specific=95)
def nonfinite_loss(loss: LossView) -> Problem | None:
    """A loss term or the total is NaN or infinite.

    Why it matters
        Its gradient is NaN as a rule, and the all-reduce gives it to every rank: one bad batch on one rank ruins the
        weights of all.

    Bad
        loss = (nll * mask).sum() / mask.sum()                # 0 / 0 where a rank has no labelled token

    Good
        loss = (nll * mask).sum() / mask.sum().clamp(min=1)

    When it is fine
        Never in a total. A term that is only logged may be infinite: leave it out of the terms.
    """
    bad = {(s.rank, s.step): [n for n, v in s.terms.items() if not math.isfinite(v)] for s in loss.steps
           if not all(math.isfinite(v) for v in (*s.terms.values(), s.value or 0.0))}
    first = min((step for _, step in bad), default=None)
    gradients = loss.scenario.first_nonfinite
    if first is None or (gradients is not None and gradients < first):
        return None         # the weights were ruined by a gradient before: nonfinite-gradient tells that
    at = [place for place in bad if place[1] == first]
    terms = sorted({name for place in at for name in bad[place]})
    outputs = sorted({name for place in at for name in loss.scenario.step(place).nonfinite_outputs})
    parameters = loss.scenario.nonfinite_names(at)
    cause = loss.scenario.cause(*(f"term:{name}" for name in terms), *(f"output:{name}" for name in outputs), "loss:")
    return Problem(
        f"{'term ' + listed(terms) if terms else 'the total'} is NaN or infinite, first in {{steps}} on {{ranks}}",
        cause=cause or Cause("nonfinite", "its formula leaves its domain for this batch"),
        remedy=REMEDIES.get(cause.kind if cause else "", "guard the formula: clamp the divisor, add an epsilon, or compute in float32"),
        parameters=parameters, outputs=outputs, terms=terms,
        ranks=sorted({rank for rank, _ in at}), steps=[first],
        about=("nonfinite-loss",),
        covers=(*(f"nonfinite:{name}" for name in parameters), *died_of_it(loss.scenario, first)),
    )
