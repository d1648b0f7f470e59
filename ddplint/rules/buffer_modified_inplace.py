"""A buffer that backward still needs is overwritten."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import failure_place, listed
from ddplint.views import ScenarioView


@rule(severity="error", checks=("buffers", "steps"), specific=34)
def buffer_modified_inplace(scenario: ScenarioView) -> list[Problem]:
    """A buffer is overwritten between its use in forward and backward.

    Why it matters
        backward() raises "modified by an inplace operation". DDP broadcasts buffers at the start of every forward, so two
        forwards before one backward can do it too (torch before 2.13), though the model is fine on one GPU.

    Bad
        logits = q @ self.queue                              # backward needs this queue
        self.queue[:, start:end] = keys.t()

    Good
        logits = q @ self.queue.clone()
        self.queue[:, start:end] = keys.t()

    When it is fine
        Never while autograd has saved the buffer.
    """
    failed = scenario.failed_as.get("inplace", [])
    if not failed:
        return []
    failure = failed[0][1]
    forwards = len(scenario.events("forward", rank=failed[0][0], step=failure.step))
    recorded = scenario.cause("failure:", *(f"buffer:{name}" for name in scenario.model.buffers), "loss:")
    text = f"it is written after it was saved for backward ({forwards} forwards ran before it)" if forwards > 1 \
        else "it is written in the same forward that saved it for backward"
    buffers = sorted(scenario.model.buffers)
    return [Problem(
        f"a buffer ({listed(buffers)}) was overwritten before backward in {{steps}} on {{ranks}}",
        cause=recorded or Cause("inplace", text, failure_place(failure)),
        remedy="clone the buffer where it is read" + (", run one forward per backward, or set ddp.broadcast_buffers=false"
                                                      if forwards > 1 else ", or write to it after backward"),
        modules=[recorded.module] if recorded and recorded.module else [],
        ranks=[rank for rank, _ in failed],
        steps=sorted({f.step for _, f in failed if f.step is not None}),
        about=("inplace",),
        covers=("failure:inplace", "failure:hang", "failure:collateral", "failure:collective", "sequence"),
    )]
