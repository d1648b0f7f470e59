"""What hangs on an output that no loss reads does not train."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count, unfinished
from ddplint.views import OutputView


@rule(severity="error", checks=("outputs", "gradients"), specific=50)
def unused_output(output: OutputView) -> Problem | None:
    """A differentiable output feeds no loss term, and parameters are stranded behind it.

    Why it matters
        DDP expects a gradient for every parameter, also for those that only this output depends on. static_graph=True
        fails at such an output, one step later than DDP does without it.

    Bad
        return {"cls": self.cls_head(h), "seg": self.seg_head(h)}      # the loss reads out["cls"] only

    Good
        loss = cls_loss(out["cls"], label) + seg_loss(out["seg"], mask)

    When it is fine
        Outputs without a graph (counts, detached maps, argmax) and outputs behind which every parameter trains
        through others are no finding.
    """
    if not output.differentiable or output.terms or output.in_total or not output.stranded:
        return None
    return Problem(
        f"feeds no loss term; {count(len(output.stranded), 'parameter')} behind it "
        + ("gets" if len(output.stranded) == 1 else "get") + " no gradient",
        cause=output.cause or Cause("output-not-in-loss", f"output '{output.name}' feeds no loss term", outputs=[output.name]),
        remedy=f"add a loss term that reads '{output.name}', or do not compute it",
        parameters=output.stranded,
        ranks=output.ranks,
        steps=output.steps,
        covers=unfinished(output.scenario),
    )
