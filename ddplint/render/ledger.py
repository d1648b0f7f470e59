"""The loss-term ledger for a page: module x term, one table for all scenarios that agree."""

import json
from dataclasses import dataclass, field

from ddplint.render.text import clean
from ddplint.report import LedgerRow, Report


@dataclass
class Ledger:
    scenarios: list[str]
    terms: list[LedgerRow]
    modules: list[tuple[str, list[str]]] = field(default_factory=list)
    """Module, and per term ``all``, ``part`` or ``none`` of its trainable parameters."""


def ledgers(report: Report) -> list[Ledger]:
    """Scenarios whose terms have the same reach and the same fate share a table; its values are the first one's."""
    by_scenario: dict[str, list[LedgerRow]] = {}
    for row in report.ledger:
        by_scenario.setdefault(row.scenario, []).append(row)
    merged: dict[str, Ledger] = {}
    for scenario, terms in by_scenario.items():
        key = json.dumps([[t.term, t.in_total, t.differentiable, sorted(t.reach.items())] for t in terms])
        merged.setdefault(key, Ledger([], terms)).scenarios.append(clean(scenario))
    for ledger in merged.values():
        modules = dict.fromkeys(module for term in ledger.terms for module in term.reach)
        ledger.modules = [(clean(module), [_share(term.reach.get(module, 0.0)) for term in ledger.terms])
                          for module in modules]
    return list(merged.values())


def _share(share: float) -> str:
    return "all" if share >= 1 else "part" if share > 0 else "none"


def fate(term: LedgerRow) -> str:
    """What becomes of a term, in words."""
    if term.in_total and term.differentiable:
        return "in the total" if term.weight is None else f"in the total, weight {term.weight:.3g}"
    return "not in the total" if term.differentiable else "no graph (a constant or a metric)"
