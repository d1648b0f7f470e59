"""A loss that cannot train anything."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import LossStep, LossView

OF_ALL_TERMS = 82
"""More specific than dropped-loss-term and severed-graph, where one line drops whatever was to be trained."""
COPIES = {"tensor", "new_tensor", "item", "tolist", "numpy", "float", "detach", "data"}
"""Calls after which the numbers are the same, and the graph is gone."""


@rule(severity="error", checks="loss", specific=66)
def loss_without_grad(loss: LossView) -> Problem | None:
    """The total has no graph, or no parameter stands behind it.

    Why it matters
        backward() raises "does not require grad and does not have a grad_fn". A fresh zero with requires_grad=True is
        worse: backward() runs, no hook of DDP fires on that rank, and the other ranks wait in their all-reduce.

    Bad
        if not targets.any():
            return torch.tensor(0.0, requires_grad=True)

    Good
        if not targets.any():
            return 0.0 * sum(output.sum() for output in outputs.values())

    When it is fine
        In a scenario that only evaluates: give it mode: eval and no loss.
    """
    bad = [step for step in loss.steps if step.differentiable is False or step.reaches is False]
    if not bad:
        return None
    dead = [step for step in bad if step.differentiable is False]
    at = dead or bad
    first = min(step.step for step in at)
    at = [step for step in at if step.step == first]
    scenario = loss.scenario
    names = scenario.names_of(scenario.use.unused) if not dead else []
    cause = loss.cause or _first_term_cause(loss, at) or Cause("constant", "it is made of constants or of detached values")
    dropped = _dropped_with(loss, cause) if len(bad) == len(loss.steps) else []
    return Problem(
        ("the total has no graph: backward() cannot run" if dead else "the total depends on no parameter")
        + " in {steps} on {ranks}",
        cause=cause,
        remedy=_remedy(cause),
        terms=sorted({name for step in at for name in step.terms}),
        ranks=sorted({step.rank for step in at}), steps=[first],
        about=("loss",),
        covers=("failure:no-grad", "failure:hang", "failure:collective", "failure:collateral", "sequence",
                *(f"parameter:{name}" for name in names), *(f"term:{name}" for name in dropped),
                *(f"output:{output.name}" for output in scenario.outputs if dropped)),
        specific=OF_ALL_TERMS if dropped else None,
    )


def _dropped_with(loss: LossView, cause: Cause) -> list[str]:
    """The terms that the same line keeps from a total which nothing reaches: they tell no other fault."""
    return [term.name for term in loss.scenario.terms if cause.place is not None and term.differentiable
            and term.cause is not None and term.cause.place == cause.place]


def _remedy(cause: Cause) -> str:
    if cause.operation == "no_grad":
        return "switch gradients off around the validation alone, as `with torch.no_grad():`, which switches them on again however it is left"
    if cause.kind in ("severed", "term-not-in-total") and cause.operation:
        through = cause.operation.strip("_.")
        if through in COPIES:
            return f"keep the graph between the model and the total: add up the terms themselves, without {through}"
        return f"compute the loss from values that have a gradient: none comes back through {through}"
    return "return a zero that depends on the outputs (0.0 * output.sum()) where there is nothing to learn"


def _first_term_cause(loss: LossView, at: list[LossStep]) -> Cause | None:
    return loss.scenario.cause(*(f"term:{name}" for step in at for name in step.terms))
