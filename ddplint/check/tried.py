"""Remedies that were tried under real DDP: each finding's remedy says what came of it."""

from collections.abc import Iterable

from ddplint.report import Finding

WORDS = {
    "freeze": "with what never gets a gradient frozen",
    "add": "with the dropped terms added to the total",
    "change before the wrap": "with requires_grad changed before DDP is built",
    "sort": "with parameters registered in the order of their names",
    "use_reentrant=False": "with use_reentrant=False",
    "find_unused_parameters=true": "with find_unused_parameters=true",
    "static_graph=true": "with static_graph=true",
    "static_graph=false": "with static_graph=false",
}
FREEZE, FLAG = ("freeze", "find_unused_parameters=true"), ("find_unused_parameters=true",)
REMEDIES = {
    "changed-after-wrap": ("change before the wrap",),
    "parameter-mismatch": ("sort",),
    "unused-parameter": FREEZE,
    "uncalled-module": FREEZE,
    "unused-output": FREEZE,
    "dropped-loss-term": ("add", *FREEZE),
    "severed-graph": FREEZE,
    "varying-usage": FLAG,
    "rank-divergent-usage": FLAG,
    "find-unused-parameters-needed": FLAG,
    "checkpoint-conflict": ("use_reentrant=False", "static_graph=true"),
    "parameter-ready-twice": ("use_reentrant=False", "static_graph=true"),
    "static-graph-violated": ("static_graph=false",),
}
"""Rule -> the trials that its remedies ask for."""


def add_trials(findings: Iterable[Finding], tried: dict[str, str]) -> None:
    """``tried`` is Evidence.tried."""
    for finding in findings:
        told = [f"{WORDS[name]}: {_outcome(tried[name])}" for name in REMEDIES.get(finding.rule, ()) if name in tried]
        if told and finding.remedy:
            finding.remedy += f" (tried {'; '.join(told)})"


def _outcome(told: str) -> str:
    return told.replace("DDP ran the scenario", "DDP ok").replace("DDP ran all", "DDP ok in all")
