"""Every rank trains a model of its own."""

from ddplint.evidence import Cause, Difference
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import ScenarioView, backwards_again

WEIGHT = {"gradients": 0, "parameters": 1, "buffers": 2}
REMEDIES = {
    "no-sync": "leave no_sync for the last backward before optimizer.step()",
    "update-left-out": "let all ranks decide alike whether to make the optimizer's step: all_reduce what the decision hangs on",
    "several-backwards": "add the losses up and call backward() once, or run the wrapped forward again before each",
    "written": "let all ranks write the same (draw it under one seed, or broadcast it afterwards), or wrap the model again: DDP broadcasts when it is built",
}


@rule(severity="error", checks=("ranks", "differences"), specific=18)
def ranks_diverge(scenario: ScenarioView) -> list[Problem]:
    """Gradients, parameters or buffers differ between ranks where they must be equal.

    Why it matters
        From then on each rank trains its own model, without a message; the checkpoint is simply rank 0's. The gradient
        hooks were never armed (no_sync left on, the inner module called, a round trip through another dtype).

    Bad
        with model.no_sync() if i % accumulate != 0 else nullcontext():      # off by one
            loss.backward()

    Good
        with model.no_sync() if (i + 1) % accumulate != 0 else nullcontext():
            loss.backward()

    When it is fine
        Under Join the gradients of a rank that has finished differ; they are not compared there. Buffers that are
        meant to differ (a queue per rank): accept them. With broadcast_buffers=False statistics that the loss does not
        read are a note, and what it is computed with (a codebook) is a warning.
    """
    found = sorted(scenario.differences, key=lambda d: (d.step, WEIGHT.get(d.what, 3)))
    if not found:
        return []
    first = found[0]
    names = list(dict.fromkeys(name for d in found if d.what == first.what for name in d.names))
    kinds = list(dict.fromkeys(d.what for d in found))
    local = kinds == ["buffers"] and scenario.ddp.get("broadcast_buffers") is False
    cause = (scenario.cause("buffers:") if local else None) or scenario.cause("ranks:") or _unhooked(scenario, names) or _unsynchronised(scenario, first.step) \
        or _second_backward(scenario, first.step) or scenario.cause(*(f"parameter:{name}" for name in names)) or _fewer_updates(scenario, first.step)
    return [Problem(
        f"{' and '.join(kinds)} differ between the ranks from step {first.step} on",
        cause=cause or Cause("unknown", _unknown(first.what)),
        remedy=_remedy(first, cause.kind if cause else ""),
        severity=None if not local else "warning" if cause and cause.kind == "diverging-state" else "note",
        parameters=[] if first.what == "buffers" else names,
        modules=sorted({name.rpartition(".")[0] or name for name in names}) if first.what == "buffers" else [],
        ranks=[rank.rank for rank in scenario.ranks],
        steps=sorted({d.step for d in found}),
        about=("desync-buffers",) if kinds == ["buffers"] else ("desync",),
        covers=("failure:undefined",) if cause and cause.kind == "several-backwards" else (),
    )]


def _unhooked(scenario: ScenarioView, names: list[str]) -> Cause | None:
    """A round trip through another dtype or device replaced the nodes that DDP's hooks sit on."""
    changes = [c for rank in scenario.ranks for c in rank.changes if c.what == "hooks" and c.parameter in names]
    if not changes:
        return None
    applied = [event for _, event in scenario.events("apply") if event.step <= changes[0].step]
    place = changes[0].place or (applied[0].place if applied else None)
    also = [f"and again at {e.place.file}:{e.place.line}" for e in applied[1:2] if e.place and e.place != place]
    return Cause("hooks-replaced", f"{count(len({c.parameter for c in changes}), 'parameter')} went through another dtype "
                 "or device after the wrap, which replaced the gradient accumulators that DDP hooked into", place, also=also)


def _unsynchronised(scenario: ScenarioView, step: int) -> Cause | None:
    """The backward right before the optimizer's step did not reduce."""
    for rank in scenario.ranks:
        last = entered = None
        for _, event in scenario.events("backward", "no-sync", "optimizer-step", rank=rank.rank, step=step):
            if event.kind == "no-sync":
                entered = event
            elif event.kind == "backward":
                last = event
            elif last is not None and last.detail == "no-sync":
                place = (entered or last).place
                return Cause("no-sync", "the last backward before optimizer.step() ran under no_sync", place, "no_sync")
    return None


def _second_backward(scenario: ScenarioView, step: int) -> Cause | None:
    """A backward that no wrapped forward went before: DDP has reduced already and is not armed again."""
    event = next(backwards_again(scenario, rank=scenario.ranks[0].rank, step=step), None)
    return Cause("several-backwards", "a second backward after one forward is not reduced", event.place, "backward") if event else None


def _fewer_updates(scenario: ScenarioView, step: int) -> Cause | None:
    """Some ranks make a step of the optimizer that others leave out."""
    made = {rank.rank: scenario.events("optimizer-step", rank=rank.rank, step=step) for rank in scenario.ranks if rank.failure is None}
    fewest, most = (pick(made, key=lambda rank: len(made[rank]), default=None) for pick in (min, max))
    if not made or len(made[fewest]) == len(made[most]):
        return None
    return Cause("update-left-out", f"in step {step} rank {fewest} leaves out the optimizer's step that rank {most} makes here",
                 made[most][-1][1].place)


def _unknown(what: str) -> str:
    if what == "buffers":
        return "they are not broadcast at the start of the forward (broadcast_buffers is off, or the inner module was called)"
    return "the gradients were not reduced before they were used"


def _remedy(first: Difference, cause: str) -> str:
    if cause == "diverging-state":
        return "all_reduce what they are computed from (counts and sums) before they are written, leave ddp.broadcast_buffers on, or accept them"
    if first.what == "buffers":
        return "leave ddp.broadcast_buffers on, use SyncBatchNorm, or accept buffers that are meant to differ"
    return REMEDIES.get(cause, "send every forward through the DDP wrapper, and wrap again after the model was changed")
