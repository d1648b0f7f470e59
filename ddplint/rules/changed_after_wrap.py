"""DDP remembers the parameters as they were when it was built."""

from ddplint.evidence import Cause, Change
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import numbered
from ddplint.views import ScenarioView
from ddplint.views.changes import took_place

SAYS = {
    "requires_grad": "was trainable when DDP was built, and is frozen now: DDP waits for its gradient",
    "dtype": "changed its dtype after DDP was built",
    "device": "moved to another device after DDP was built",
    "identity": "was replaced by another parameter after DDP was built",
    "removed": "was removed or replaced after DDP was built",
}
REMEDIES = {"requires_grad": "wrap again after the change, or wrap with everything trainable and use lr 0 until it is to train"}


@rule(severity="error", checks="steps", specific=87)
def changed_after_wrap(scenario: ScenarioView) -> list[Problem]:
    """A parameter's requires_grad, dtype or identity changed after DDP was built.

    Why it matters
        DDP puts its hooks on the parameters that are trainable at construction. One that is unfrozen later gets
        gradients that nobody averages; one that is frozen later is waited for.

    Bad
        ddp = DistributedDataParallel(model)
        model.backbone.requires_grad_(True)                  # at epoch 2

    Good
        model.backbone.requires_grad_(True)
        ddp = DistributedDataParallel(model)

    When it is fine
        Freezing with find_unused_parameters=True works, though it is not faster.
    """
    groups: dict[tuple, list[Change]] = {}
    told = [change for rank in scenario.ranks for change in rank.changes if change.what in SAYS]
    used = _last_used(scenario) if told else {}
    for change in told:
        # Frozen for a part of each step only, as GANs do it: it gets a gradient again later (varying-usage speaks of that).
        if change.what != "requires_grad" or used.get(change.parameter, -1) <= change.step:
            place = (change.place.file, change.place.line) if change.place else ()
            groups.setdefault((change.what, place), []).append(change)
    return [_problem(scenario, what, changes) for (what, _), changes in groups.items()]


def _last_used(scenario: ScenarioView) -> dict[str, int]:
    """The last step in which each of DDP's parameters got a gradient."""
    return {p.name: max((step for _, step in p.used_at), default=-1) for p in scenario.parameters if p.trainable}


def _problem(scenario: ScenarioView, what: str, changes: list[Change]) -> Problem:
    names = list(dict.fromkeys(change.parameter for change in changes))
    step = min(change.step for change in changes)
    successors = [s.name for rank in scenario.ranks for s in rank.strays if any(took_place(s, c) for c in changes)]
    frozen = {p.name for p in scenario.model.parameters if not p.trainable}
    unfrozen = what == "requires_grad" and set(names) <= frozen
    return Problem(
        "was frozen when DDP was built, and is trainable now: its gradients are not averaged" if unfrozen else SAYS[what],
        cause=scenario.cause(*(f"change:{name}" for name in names))
        or Cause("changed", f"{what} changed in {numbered('step', [step])}", changes[0].place),
        remedy=REMEDIES.get(what, "change the model before it is wrapped, or wrap it again"),
        severity="warning" if what == "requires_grad" and not unfrozen and scenario.finds_unused else None,
        parameters=list(dict.fromkeys([*names, *successors])),
        ranks=[rank.rank for rank in scenario.ranks if rank.changes],
        steps=[step],
        about=tuple(f"change:{name}" for name in names),
        covers=("desync", "failure:unfinished", "flag-needed", *(f"parameter:{name}" for name in names),
                *(("loss",) if what in ("identity", "removed") else ())),       # all may be others now
    )
