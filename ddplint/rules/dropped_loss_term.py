"""A term that is computed, and trains nothing."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count, unfinished
from ddplint.views import TermView

BEHIND_A_CUT = 70
"""Less specific than severed-graph, which tells the line where it costs parameters their gradient."""


@rule(severity="error", checks="terms", specific=80)
def dropped_loss_term(term: TermView) -> Problem | None:
    """A loss term contributes nothing to the total, or is added to it without a gradient.

    Why it matters
        The term looks alive in the log while nothing learns from it: it was left out of the sum, added as .item() or
        .detach(), multiplied by zero, or cancelled out. What only this term would train gets no gradient, and DDP
        complains about those parameters by their index.

    Bad
        loss = terms["l1"] + 0.1 * terms["adversarial"].item()

    Good
        loss = terms["l1"] + 0.1 * terms["adversarial"]

    When it is fine
        A term without a graph that is not in the total is a metric, and no finding; nor is a constant one. One with a graph that strands no
        parameter and has no output of its own may be one too: a warning (detach it, and it is silent). A term that another scenario
        counts in, and that strands no parameter here, is a schedule, and no finding.
    """
    if not term.differentiable:
        return _without_gradient(term)
    if term.contributes_at:
        return None
    stranded = term.stranded
    if not stranded and term.contributes_in:
        return None
    zero = term.in_total
    recorded = term.cause
    text = f"d total / d '{term.name}' is 0" if zero else f"'{term.name}' is not in the total's graph"
    cause = recorded or _from_parameters(term, stranded) or Cause("term-not-in-total", text, terms=[term.name])
    return Problem(
        _message(zero, len(stranded)),
        severity=None if stranded or term.own_outputs else "warning",
        cause=cause,
        remedy=f"give '{term.name}' a weight other than 0, or do not compute it" if zero
        else f"add '{term.name}' itself to the total (no .item(), .detach()), or do not compute it",
        parameters=stranded,
        outputs=term.own_outputs,
        ranks=term.ranks,
        steps=term.steps,
        covers=(*(f"{what}:{name}" for name in stranded for what in ("parameter", "untrained")), *(f"output:{name}" for name in term.own_outputs),
                *(f"shared:{name}" for name in term.parameters), *(() if zero else unfinished(term.scenario))),
    )


def _without_gradient(term: TermView) -> Problem | None:
    """It depends on parameters and is added up, and no gradient comes back in any step: a balance loss made of counts."""
    others = (other for scenario in term.scenario.run.scenarios for other in scenario.terms if other.name == term.name)
    if term.cause is None or term.cause.kind != "ungraphed" or any(other.differentiable for other in others):
        return None
    return Problem(
        "is added to the total, but has no gradient: it trains nothing",
        severity="warning",
        cause=term.cause,
        remedy=f"compute '{term.name}' from what has a gradient (probabilities in place of counts and indices, no detach()), or leave it out of the total",
        ranks=term.ranks,
        steps=term.steps,
        about=(f"line:{place.file}:{place.line}",) if (place := term.cause.place) else (),
        specific=BEHIND_A_CUT,
    )


def _message(zero: bool, stranded: int) -> str:
    what = "contributes to the total with weight 0" if zero else "is computed, but not in the total"
    return what + (f"; {count(stranded, 'parameter')} would train through nothing else" if stranded else "")


def _from_parameters(term: TermView, stranded: list[str]) -> Cause | None:
    """The cause that was found for a stranded parameter names the line where the term is left out."""
    causes = (term.scenario.cause(f"parameter:{name}") for name in stranded)
    return next((cause for cause in causes if cause and (term.name in cause.terms or cause.kind == "term-not-in-total")), None)
