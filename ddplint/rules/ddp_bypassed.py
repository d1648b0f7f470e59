"""DDP averages what went through its own forward."""

from ddplint.evidence import Cause, Event
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import numbered
from ddplint.views import ScenarioView


@rule(severity="error", checks=("ranks", "steps"), specific=86)
def ddp_bypassed(scenario: ScenarioView) -> list[Problem]:
    """The forward did not go through the wrapper, and gradients are not reduced.

    Why it matters
        model.module(...) and methods of the inner module do not arm DDP's reducer: each rank trains alone, without a
        message. With find_unused_parameters a part that is called after the wrapped forward is booked as unused, and then
        its gradients arrive anyway: "mark a variable ready only once".

    Bad
        loss = ddp.module.compute_loss(batch)

    Good
        loss = ddp(batch)                                    # forward returns the loss

    When it is fine
        Micro-batches that must not synchronise may go past the wrapper if the last one does not; evaluation under no_grad.
    """
    events = scenario.events("inner-forward")
    if not events:
        return _by_grad(scenario)
    unreduced = [d for d in scenario.differences if d.what == "gradients"] or (
        scenario.differences if not scenario.events("forward") else [])
    if unreduced and not _unarmed(scenario, unreduced[0].step):
        unreduced = []
    if unreduced:
        return [_problem(scenario, events, unreduced[0].step, "gradients are not averaged", ("desync",))]
    if "ready-twice" in scenario.failed_as and scenario.finds_unused:
        return [_problem(scenario, events, events[0][1].step, "booked as unused, then its gradients arrive",
                         ("failure:ready-twice", "ready-twice"))]
    return []


def _by_grad(scenario: ScenarioView) -> list[Problem]:
    """Gradients that torch.autograd.grad returns: no hook of DDP fires."""
    first = next((d for d in scenario.differences if d.what in ("gradients", "parameters")), None)
    events = scenario.events("grad", step=first.step) if first else []
    if not events or scenario.events("backward", step=first.step):
        return []
    return [Problem(
        "gradients are taken by torch.autograd.grad in {steps}, and not averaged",
        cause=scenario.cause("bypass:") or Cause("bypassed", "torch.autograd.grad returns gradients without DDP's hooks",
                                                 events[0][1].place, "autograd.grad"),
        remedy="call loss.backward(), or average what autograd.grad returns with an all_reduce of your own",
        ranks=sorted({rank for rank, _ in events}),
        steps=[first.step],
        about=("bypass",),
        covers=("desync", "flag-needed", *(f"parameter:{name}" for name in scenario.names_of(scenario.use.missing))),
    )]


def _unarmed(scenario: ScenarioView, step: int) -> bool:
    """Whether some rank's last forward before the optimizer's step was not the wrapper's, or the part lies outside of it."""
    for rank in scenario.ranks:
        seen = [e for _, e in scenario.events("forward", "inner-forward", "optimizer-step", rank=rank.rank, step=step)]
        before = seen[:next((i for i, e in enumerate(seen) if e.kind == "optimizer-step"), len(seen))]
        if before and before[-1].kind == "inner-forward":
            return True
    return False


def _problem(scenario: ScenarioView, events: list[tuple[int, Event]], step: int, what: str, covers: tuple[str, ...]) -> Problem:
    here = [event for _, event in events if event.step == step] or [event for _, event in events]
    module, place = here[-1].detail, here[-1].place
    names = [p.name for p in scenario.model.parameters if p.trainable and module and p.name.startswith(f"{module}.")]
    said = f"{module} is called past the wrapper" if module else "the wrapped module is called directly"
    return Problem(
        f"{said} in {numbered('step', {event.step for _, event in events})}: {what}",
        cause=scenario.cause("ranks:", "bypass:") or Cause("bypassed", f"{said}, so DDP.forward does not see it", place, module=module),
        remedy="send it through the DDP wrapper: let the module's forward do this work and return the loss",
        parameters=names,
        modules=[] if names or not module else [module],
        ranks=sorted({rank for rank, _ in events}),
        steps=sorted({event.step for _, event in events}),
        about=("bypass",),
        covers=(*covers, "sequence"),
    )
