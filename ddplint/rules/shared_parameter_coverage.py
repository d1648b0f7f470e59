"""A tied weight that learns from one of its uses only."""

from collections.abc import Iterable

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import listed
from ddplint.views import ScenarioView


@rule(severity="error", checks=("uses", "gradients"), specific=38)
def shared_parameter_coverage(scenario: ScenarioView) -> list[Problem]:
    """A shared parameter is used in several places, and one of them does not reach the loss.

    Why it matters
        The parameter has a gradient, so DDP and the log are content; yet the embedding learns nothing from its use as
        an output head (or the other way round).

    Bad
        logits = hidden @ self.embedding.weight.detach().t()

    Good
        logits = hidden @ self.embedding.weight.t()

    When it is fine
        One of the uses is a target or a teacher: run it under torch.no_grad(), then it does not count as a use.
        One module (or its twin) that is called again on a detached path (iterative refinement) while all parameters learn: a note.
    """
    return [problem for name in scenario.shared if (problem := _problem(scenario, name))]


def _problem(scenario: ScenarioView, name: str) -> Problem | None:
    arrives: dict[str, bool] = {}
    for use in scenario.uses(name):
        arrives[use.module] = arrives.get(use.module, False) or use.in_total
    lost = sorted(module for module, in_total in arrives.items() if not in_total)
    if not lost or not any(arrives.values()):
        return None
    refined = _one_module(scenario, arrives) and not scenario.lacking
    reaching = sorted(module for module in arrives if module not in lost)
    return Problem(
        f"its use in {listed(lost)} does not reach the loss; that in {listed(reaching)} does",
        cause=scenario.cause(f"use:{name}", *(f"use:{name}:{module}" for module in lost), f"parameter:{name}")
        or Cause("severed", f"what {listed(lost)} computes from it does not arrive at the total", module=lost[0]),
        remedy=f"let the result of {listed(lost)} reach the loss, or run it under torch.no_grad() if it must not train",
        parameters=[name],
        modules=lost,
        severity="note" if refined else None,
        about=(f"shared:{name}",),
    )


def _one_module(scenario: ScenarioView, names: Iterable[str]) -> bool:
    """Whether these are one module under several names, or its twins, of one type and with all parameters in common."""
    registered = {module.name: module.type for module in scenario.model.modules}
    own: dict[str, set[str]] = {}
    for parameter in scenario.model.parameters:
        for name in (parameter.name, *parameter.aliases):
            own.setdefault(name.rpartition(".")[0], set()).add(parameter.name)
    kinds = {(registered[name], frozenset(own.get(name, ()))) for name in names if name in registered}
    return bool(registered) and len(kinds) < 2
