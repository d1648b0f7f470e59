"""A search that finds nothing, in every step."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import RunView


@rule(severity="warning", checks="gradients", specific=15)
def find_unused_parameters_needless(run: RunView) -> list[Problem]:
    """find_unused_parameters is on, and every parameter gets a gradient everywhere.

    Why it matters
        DDP walks the whole graph after every forward: a few per cent of a step, up to a quarter with hundreds of tiny
        tensors. It also hides parameters that stop training later.

    Bad
        DistributedDataParallel(model, find_unused_parameters=True)      # every parameter is used in every step

    Good
        DistributedDataParallel(model)

    When it is fine
        A draw that was not seen here skips a part (LayerDrop, rare inputs): add that scenario, or more steps.
    """
    asked = [scenario for scenario in run.scenarios if scenario.finds_unused]
    unclear = [s for s in asked if s.why_unknown("gradients") or s.lacking or s.failures]
    if not asked or unclear:
        return []
    tried = {flag: run.evidence.tried.get(f"find_unused_parameters={flag}") for flag in ("true", "false")}
    cost = "; ".join(f"{'with' if flag == 'true' else 'without'} it {said}" for flag, said in tried.items() if said)
    draws = sum(len(scenario.use.uses) for scenario in asked)
    return [Problem(
        f"find_unused_parameters is on, yet every parameter got a gradient in each of {count(draws, 'step')} that were seen",
        cause=Cause("flag", f"DDP searches the graph in every step and finds nothing{f' ({cost})' if cost else ''}"),
        remedy="set ddp.find_unused_parameters=false",
        scenarios=[scenario.name for scenario in asked],
        about=("flag-needless",),
    )]
