"""A mean of means is not the mean."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import TermView


@rule(severity="warning", checks=("ranks", "counts"), specific=26)
def loss_weighting(term: TermView, *, ratio: float = 1.5) -> Problem | None:
    """Each rank's loss is a mean over its own count: DDP's average is not the global mean.

    Why it matters
        DDP averages the ranks' gradients with equal weight. A rank with 10 labelled tokens counts as much as one with
        1,000, so its tokens weigh a hundred times more: the objective is not the one of a single GPU.

    Bad
        loss = (nll * mask).sum() / mask.sum()               # this rank's own count

    Good
        total = all_reduce(mask.sum())
        loss = (nll * mask).sum() * world_size / total

    When it is fine
        Counts that are equal, or nearly so.

        Option: ``ratio``, how far the counts of two ranks may lie apart.
    """
    counts: dict[int, dict[int, float]] = {}
    for (rank, step), _ in term.seen:
        if term.name in (known := term.scenario.step((rank, step)).counts):
            counts.setdefault(step, {})[rank] = known[term.name]
    uneven = [step for step, per_rank in counts.items() if max(per_rank.values()) > ratio * max(min(per_rank.values()), 0)]
    uneven = [step for step in uneven if len(counts[step]) > 1]
    if not uneven:
        return None
    text = ", ".join(f"{number:g} on rank {rank}" for rank, number in sorted(counts[uneven[0]].items()))
    return Problem(
        "a mean over different counts on {ranks} in {steps}",
        cause=Cause("weighting", f"each rank divides by its own count, in step {uneven[0]}: {text}", term.place),
        remedy="divide by the global count over world_size (one all_reduce of the count), or feed equal counts",
        ranks=sorted(counts[uneven[0]]),
        steps=uneven,
        about=(f"weighting:{term.name}",),
        covers=("global-batch",),
    )
