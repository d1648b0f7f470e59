"""A static graph that is none."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import ScenarioView
from ddplint.views.changes import changed_set


@rule(severity="error", checks="steps", specific=77)
def static_graph_violated(scenario: ScenarioView) -> list[Problem]:
    """static_graph is on, and the set of parameters with a gradient changes.

    Why it matters
        static_graph takes the first step's set for every later step: DDP raises "Your training graph has changed", or
        reduces wrong gradients without a word where the sets differ between ranks.

    Bad
        DistributedDataParallel(model, static_graph=True)    # an auxiliary head joins after a warm-up

    Good
        DistributedDataParallel(model, find_unused_parameters=True)

    When it is fine
        Never. A part that is never run is fine under static_graph; a part that is run now and then is not.
    """
    if not scenario.static:
        return []
    names, steps, ranks = changed_set(scenario)
    failed = scenario.failed_as.get("graph-changed", [])
    if not names and not failed:
        return []
    names = names or scenario.names_of(scenario.unreduced)      # the set changes from backward to backward
    return [Problem(
        "static_graph is on, but the set of gradients changes in {steps}" + _which(names),
        cause=scenario.cause(*(f"parameter:{name}" for name in names), "failure:")
        or Cause("unknown", "a part of the model is used in some steps only"),
        remedy="set ddp.static_graph=false and ddp.find_unused_parameters=true, or run the part in every step with weight 0",
        parameters=names,
        ranks=ranks or [rank for rank, _ in failed],
        steps=steps or sorted({f.step for _, f in failed if f.step is not None}),
        about=("static-graph",),
        covers=("failure:graph-changed", "failure:unfinished", "desync", "flag-needed",
                *(f"parameter:{name}" for name in names)),
    )]


def _which(names: list[str]) -> str:
    return f": {count(len(names), 'parameter')} {'joins or leaves' if len(names) == 1 else 'join or leave'}" if names else ""
