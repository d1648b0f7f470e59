"""The ranks' averaged gradient is not that of the global batch."""

import math

from ddplint.evidence import Cause, Reference
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="warning", checks="reference", specific=24)
def global_batch_mismatch(scenario: ScenarioView, *, tolerance: float = 0.02) -> Problem | None:
    """The gradient after the reduction is not the one that a single process computes on the global batch.

    Why it matters
        DDP averages. A summed loss, a second averaging by hand, micro-batches that are added up without dividing: each
        trains with another learning rate (or weight decay, or clipping) than on one GPU, and nothing says so.

    Bad
        loss = cross_entropy(logits, labels, reduction="sum")           # 1 / world size of what one process computes

    Good
        loss = cross_entropy(logits, labels)

    When it is fine
        Losses that look across the batch (in-batch negatives, batch statistics) differ by nature: the global batch has
        more to look at. Runs only with run.reference=true; the model is in eval mode for it.

        Option: ``tolerance``, how far the two may lie apart, relative to their length.
    """
    reference = scenario.seen.reference
    size = _length(reference.sizes)
    if not size or not math.isfinite(size):
        return None
    factor = sum(f * s * s for f, s in zip(reference.factors, reference.sizes, strict=True)) / size ** 2
    rest = math.hypot(*reference.rests) if reference.rests else 0.0
    apart = _length((f - factor) * s for f, s in zip(reference.factors, reference.sizes, strict=True))
    beside = math.hypot(rest, apart) / max(size * abs(factor), 1e-30)
    if beside <= tolerance and abs(factor - 1) <= tolerance:
        return None
    return _scaled(scenario, factor) if beside <= tolerance else _turned(scenario, reference, beside, factor)


def _length(values) -> float:
    return math.sqrt(sum(value * value for value in values))


def _scaled(scenario: ScenarioView, factor: float) -> Problem:
    cause, remedy = _guess(factor, scenario.world_size, scenario.seen.reference)
    return Problem(f"the reduced gradient is {_times(factor)} that of the global batch on one process", cause=Cause("scale", cause),
                   remedy=remedy, ranks=[rank.rank for rank in scenario.ranks], steps=[0], about=("gradient-scale",))


def _guess(factor: float, world: int, reference: Reference) -> tuple[str, str]:
    if world > 1 and _near(factor, 1 / world):
        return (f"the loss is a sum that DDP averages, or it is divided by the world size ({world}) a second time",
                "use the mean, or multiply a summed loss by the world size; do not average by hand what DDP has averaged")
    if world > 1 and _near(factor, world):
        return (f"the ranks' gradients are added up ({world} of them), not averaged",
                "divide by the world size what is reduced by hand")
    parts = round(factor)
    if reference.declared and parts > 1 and _near(factor, parts):
        return (f"{parts} backwards are added up before the step", f"divide each micro-batch's loss by {parts}")
    return "the loss that backward() is called on is another multiple of it", "look for a factor in the loss or the reduction"


def _near(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= 0.02 * wanted


def _times(factor: float) -> str:
    return f"{factor:.3g} times" if factor > 0 else f"{factor:.3g} times (it points the other way)"


def _turned(scenario: ScenarioView, reference: Reference, beside: float, factor: float) -> Problem:
    off = [name for name, f, s, r in zip(reference.names, reference.factors, reference.sizes, reference.rests, strict=True)
           if math.hypot(r, (f - factor) * s) > 0.02 * s * abs(factor)]
    return Problem(
        f"the reduced gradient is not that of the global batch on one process: {beside:.0%} of it points elsewhere",
        cause=Cause("weighting", "the ranks' losses are averaged with equal weight, but are means over different counts, or the "
                    "loss looks across its batch"),
        remedy="divide by the global count over world_size (one all_reduce of the count); accept it for losses that compare samples",
        parameters=off, ranks=[rank.rank for rank in scenario.ranks], steps=[0], about=("global-batch",))
