"""A lazy parameter that has no shape yet."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import failure_place
from ddplint.views import ParameterView


@rule(severity="error", checks="model", specific=90, among="uninitialized")
def uninitialized_parameter(parameter: ParameterView) -> Problem | None:
    """A lazy module has not seen data when DDP is built.

    Why it matters
        DDP broadcasts and buckets parameters by their shape: it refuses a model in which one is missing.

    Bad
        model = Net()                                        # holds nn.LazyLinear
        ddp = DistributedDataParallel(model)

    Good
        model(dummy_batch)                                   # one that visits every lazy layer
        ddp = DistributedDataParallel(model)

    When it is fine
        Never.
    """
    if parameter.initialized:
        return None
    failed = parameter.scenario.failed_as.get("uninitialized", [])
    place = failure_place(failed[0][1]) if failed else None
    return Problem(
        "has no shape yet when DDP is built",
        cause=parameter.cause or Cause("uninitialized", "its lazy module was not called before the wrap", place,
                                       module=parameter.module),
        remedy="run a dummy forward that visits this module before the model is wrapped (or give the size to the constructor)",
        ranks=[rank for rank, _ in failed],
        covers=("failure:uninitialized",),
    )
