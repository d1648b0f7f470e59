"""DDP reduces a gradient when it is complete; here it is complete twice."""

from ddplint.evidence import Cause, Place
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count, failure_place, listed
from ddplint.views import ScenarioView
from ddplint.views.failures import named_parameters

GENERAL = "use_reentrant=False in checkpoints; call every part of the model inside the wrapped forward, once per backward"
REMEDIES = {
    "several-forwards": "run one forward over both batches, put together, before the backward, or set ddp.find_unused_parameters=false",
    "several-backwards": "call backward() once after a wrapped forward, on the sum of the losses",
    "hidden-output": "return a dict, a tuple, a NamedTuple or a dataclass, or set ddp.find_unused_parameters=false",
    "read-outside": "compute this inside the wrapped forward and return it (a penalty on weights: the optimizer's weight_decay)",
}
"""Kind of cause -> what to do."""


@rule(severity="error", checks="steps", specific=58)
def parameter_ready_twice(scenario: ScenarioView) -> list[Problem]:
    """A parameter's gradient is complete more than once within one backward.

    Why it matters
        DDP marks a bucket as ready at the first firing. It raises "Expected to mark a variable ready only once", or
        reduces a gradient that is still incomplete, and the ranks drift apart without a word.

    Bad
        h = checkpoint(self.block, h, use_reentrant=True)
        h = checkpoint(self.block, h, use_reentrant=True)    # the same block again

    Good
        h = checkpoint(self.block, h, use_reentrant=False)

    When it is fine
        With static_graph=True DDP counts the firings in the first step, and several are legal.
    """
    failed = scenario.failed_as.get("ready-twice", [])
    twice = {} if scenario.static else scenario.fired_twice()
    if not failed and not twice:
        return []
    names = list(dict.fromkeys([*twice, *(n for _, f in failed for n in named_parameters(f))]))
    most = max(twice.values(), default=2)
    place = failure_place(failed[0][1]) if failed else None
    cause = scenario.cause("failure:", *(f"parameter:{name}" for name in names)) or _why(scenario, place)
    return [Problem(
        f"{count(len(names), 'gradient')} complete up to {most} times in one backward" if names
        else "a gradient is complete twice in one backward",
        cause=cause,
        remedy=REMEDIES.get(cause.kind, GENERAL),
        parameters=names,
        ranks=sorted({rank for rank, _ in failed} or {rank.rank for rank in scenario.ranks}),
        steps=sorted({f.step for _, f in failed if f.step is not None}),
        about=("ready-twice",),
        covers=("failure:ready-twice", "desync"),
    )]


def _why(scenario: ScenarioView, place: Place | None) -> Cause:
    """Without a recorded cause: find_unused_parameters books as unused what it does not find behind the outputs of the last forward."""
    hidden = [output.name for output in scenario.outputs if output.differentiable and not output.visible]
    forwards = [event for _, event in scenario.events("forward")]
    backwards = len(scenario.events("backward"))
    if scenario.finds_unused and hidden:
        return Cause("hidden-output", f"output {listed(hidden)} is returned in an object that DDP does not look into, so "
                     "what it depends on is booked as unused", place, outputs=hidden)
    if scenario.finds_unused and len(forwards) > max(backwards, 1):
        return Cause("several-forwards", "several forwards run before one backward, which find_unused_parameters=True "
                     "does not go with", forwards[-1].place or place)
    return Cause("ready-twice", "it takes part in several backwards within one, or outside of the wrapped forward", place)
