"""The ranks built different models."""

from ddplint.evidence import Cause, Mismatch
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="error", checks=("ranks", "model"), specific=90)
def parameter_mismatch(scenario: ScenarioView) -> list[Problem]:
    """Names, shapes, dtypes, order or (after the wrap) values differ between the ranks' models.

    Why it matters
        DDP pairs parameters by position. Another shape makes it refuse the model; another order of equal shapes makes it
        average gradients of different parameters, without a word.

    Bad
        vocabulary = build_vocabulary(own_shard)             # as many rows as this rank's data has words

    Good
        vocabulary = build_vocabulary(all_data)              # once, then broadcast

    When it is fine
        Values that differ before the wrap: DDP broadcasts rank 0's, and they are compared after it.
    """
    failed = scenario.failed_as.get("size-mismatch", [])
    return [_problem(scenario, mismatch, [rank for rank, _ in failed]) for mismatch in scenario.mismatches]


def _problem(scenario: ScenarioView, mismatch: Mismatch, failed: list[int]) -> Problem:
    buffers = mismatch.what == "buffers"
    cause = scenario.cause(*(f"parameter:{name}" for name in mismatch.names), "model:")
    place = mismatch.place or (cause.place if cause else None)
    return Problem(
        f"{mismatch.what} differ between the ranks: {mismatch.text}",
        cause=Cause(cause.kind if cause else "ranks-build-differently", mismatch.text if cause is None else cause.text, place,
                    also=cause.also if cause else []),
        remedy="build the model from the same sizes and in the same order on every rank",
        parameters=[] if buffers else list(mismatch.names),
        modules=sorted({name.rpartition(".")[0] or name for name in mismatch.names}) if buffers else [],
        ranks=failed,
        about=(f"mismatch:{mismatch.what}",),
        covers=("failure:size-mismatch", "failure:collateral", "failure:collective", "desync", "desync-buffers",
                "mismatch:values"),
    )
