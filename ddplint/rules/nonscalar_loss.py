"""backward() needs a single number."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import LossView


@rule(severity="error", checks="loss", specific=66)
def nonscalar_loss(loss: LossView) -> Problem | None:
    """The total has more than one element.

    Why it matters
        backward() raises "grad can be implicitly created only for scalar outputs". Often the mean was forgotten
        (reduction="none"), or nn.DataParallel gathered one loss per GPU before.

    Bad
        loss = cross_entropy(logits, label, reduction="none")

    Good
        loss = cross_entropy(logits, label, reduction="none").mean()

    When it is fine
        Never; a total of shape [1] is accepted.
    """
    bad = [step for step in loss.steps if step.shape is not None and _size(step.shape) != 1]
    if not bad:
        return None
    first = bad[0]
    return Problem(
        f"the total has shape {first.shape}: backward() needs one number",
        cause=loss.cause or Cause("nonscalar", f"the total is a tensor of {_size(first.shape)} elements"),
        remedy="reduce it: .mean() or .sum()",
        terms=sorted(first.terms),
        ranks=sorted({step.rank for step in bad}), steps=sorted({step.step for step in bad}),
        about=("nonscalar",),
        covers=("failure:nonscalar", "failure:hang", "failure:collateral"),
    )


def _size(shape: list[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
