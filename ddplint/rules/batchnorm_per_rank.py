"""BatchNorm sees one rank's batch only."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count, failure_place
from ddplint.views import ScenarioView


@rule(severity="warning", checks="batchnorm", specific=34)
def batchnorm_per_rank(scenario: ScenarioView, *, values: int = 3) -> list[Problem]:
    """BatchNorm in train mode normalises over very few values per rank, without SyncBatchNorm.

    Why it matters
        Its statistics are those of this rank's part of the batch. Of two values the normalised ones are always +1 and -1,
        whatever the input; with a single one the forward raises, though the same global batch works on one GPU.

    Bad
        batch_size_per_gpu = 1                               # and a 1x1 map in front of BatchNorm2d

    Good
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)

    When it is fine
        GroupNorm and LayerNorm do not look at the batch. A BatchNorm in eval mode is no finding.

        Option: ``values``, how many values per channel are enough.
    """
    failed = scenario.failed_as.get("one-value", [])
    if failed:
        return [_raised(scenario, failed)]
    fewest: dict[str, int] = {}
    for rank in scenario.ranks:
        for module, number in (rank.batchnorm or {}).items():
            fewest[module] = min(number, fewest.get(module, number))
    few = [module for module, number in fewest.items() if number < values]
    return [Problem(
        f"normalises over {count(min(fewest[module] for module in few), 'value')} per channel on a rank",
        cause=scenario.cause(*(f"module:{module}" for module in few))
        or Cause("small-batch", "each rank sees its own part of the batch only", module=few[0]),
        remedy="set ddp.sync_batchnorm=true, use GroupNorm, or give each rank more samples",
        parameters=[name for module in few for name in _own(scenario, module)],
        modules=few,
        about=tuple(f"batchnorm:{module}" for module in few),
    )] if few else []


def _raised(scenario: ScenarioView, failed: list) -> Problem:
    failure = failed[0][1]
    module = failure.module
    return Problem(
        "BatchNorm got a single value per channel on {ranks}, and raised",
        cause=scenario.cause("failure:", f"module:{module}") or Cause(
            "small-batch", f"{module or 'a BatchNorm'} gets one value per channel from this rank's batch",
            failure_place(failure), module=module),
        remedy="at least two values per channel on each rank (drop_last), ddp.sync_batchnorm=true, or GroupNorm",
        severity="error",
        parameters=_own(scenario, module),
        modules=[module] if module else [],
        ranks=[rank for rank, _ in failed],
        steps=sorted({f.step for _, f in failed if f.step is not None}),
        about=(f"batchnorm:{module}",),
        covers=("failure:one-value", "failure:hang", "failure:collateral", "failure:collective", "sequence"),
    )


def _own(scenario: ScenarioView, module: str) -> list[str]:
    return scenario.names_of(scenario.by_module.get(module, ()))
