"""What must have been seen before a rule can speak: the aspects that rules name in ``checks``."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddplint.views.scenario import ScenarioView


class Absent(str):
    """A reason of another kind: there is nothing of this sort to look at, rather than it was not seen."""

    __slots__ = ()


def why_not(scenario: "ScenarioView", aspect: str) -> str | None:
    """Why an aspect is not there, as far as the evidence itself shows it; an aspect without a test is always there."""
    test = ASPECTS.get(aspect)
    return test(scenario) if test else None


def _once(scenario: "ScenarioView", what: str, make: Callable[[], bool]) -> bool:
    """A fact of the model, looked up once for all of its scenarios."""
    return scenario.run.once((what, scenario.seen.model), make)


def _calls(scenario: "ScenarioView") -> str | None:
    return None if scenario.forward_ended else _ended(scenario, "no forward ended")


def _gradients(scenario: "ScenarioView") -> str | None:
    return None if scenario.use.uses else _ended(scenario, "no backward ended")


def _uses(scenario: "ScenarioView") -> str | None:
    if not scenario.shared:
        return Absent("the model has no shared parameter")
    if scenario.opaque:
        return f"the graph does not show every use ({', '.join(scenario.opaque)})"
    return None if any(scenario.uses(name) for name in scenario.shared) else "no use of a shared parameter was seen"


def _ties(scenario: "ScenarioView") -> str | None:
    known = scenario.shared or scenario.model.ties or any(rank.ties for rank in scenario.ranks)
    return None if known else _model(scenario) or Absent("the model has no shared parameter")


def _differences(scenario: "ScenarioView") -> str | None:
    if scenario.joined:
        return "ranks are not compared under join"
    stepped = scenario.events("optimizer-step") if scenario.seen.custom_step \
        else any(step.phase in ("optimizer", "done") for step in scenario.steps())
    return None if stepped or scenario.differences else _ended(scenario, "no optimizer step was seen")


def _ranks(scenario: "ScenarioView") -> str | None:
    return "there is one rank only" if scenario.world_size < 2 else None


def _loss(scenario: "ScenarioView") -> str | None:
    return None if scenario.loss.steps else _ended(scenario, "no loss was seen")


def _terms(scenario: "ScenarioView") -> str | None:
    if scenario.terms:
        return None
    return "the user's own step shows no terms" if scenario.seen.custom_step else _ended(scenario, "no loss term was seen")


def _outputs(scenario: "ScenarioView") -> str | None:
    return None if scenario.outputs else _ended(scenario, "no output was seen")


def _model(scenario: "ScenarioView") -> str | None:
    return None if scenario.model.parameters else _ended(scenario, "the model was not built")


def _sizes(scenario: "ScenarioView") -> str | None:
    return None if scenario.sizes else _gradients(scenario) or "the sizes of the gradients were not noted"


def _optimizer(scenario: "ScenarioView") -> str | None:
    known = any(rank.optimizer or rank.optimizer_place for rank in scenario.ranks)
    known = known or _once(scenario, "groups", lambda: any(p.groups is not None for p in scenario.model.parameters))
    return None if known else _ended(scenario, "no optimizer was seen")


def _steps(scenario: "ScenarioView") -> str | None:
    return None if scenario.steps_seen or scenario.failures else "no step was run"


def _buffers(scenario: "ScenarioView") -> str | None:
    return None if scenario.model.buffers else Absent("the model has no buffers")


def _activations(scenario: "ScenarioView") -> str | None:
    return None if any(rank.dead is not None for rank in scenario.ranks) else "activations were not looked at"


def _checkpoints(scenario: "ScenarioView") -> str | None:
    known = scenario.events("checkpoint") or scenario.fired_twice() or "ready-twice" in scenario.failed_as
    blamed = known or any(cause.kind == "checkpoint" for cause in scenario.seen.causes.values())
    return None if blamed else _steps(scenario) or Absent("no activation checkpoint was used")


def _clips(scenario: "ScenarioView") -> str | None:
    return None if scenario.events("clip") else _steps(scenario) or Absent("no gradient was clipped")


def _layouts(scenario: "ScenarioView") -> str | None:
    return None if any(rank.layouts is not None for rank in scenario.ranks) else "the gradients' strides were not looked at"


def _batchnorm(scenario: "ScenarioView") -> str | None:
    if scenario.model.modules and not _once(
            scenario, "batchnorm", lambda: any(module.batchnorm for module in scenario.model.modules)):
        return Absent("the model has no BatchNorm")
    seen = any(rank.batchnorm is not None for rank in scenario.ranks) or "one-value" in scenario.failed_as
    return None if seen else "the batches of BatchNorm were not looked at"


def _branches(scenario: "ScenarioView") -> str | None:
    if scenario.seen.branches is None:
        return "branches were not traced"
    lost = next((f for _, f in scenario.failures if f.kind != "raised" and not f.collateral), None)
    if lost is not None and not all(branch.taken for branch in scenario.seen.branches):
        return f"which branch a rank took that {lost.kind} is not known"
    return None if scenario.seen.branches else Absent("no branch stands in the source of the model or the loss")


def _counts(scenario: "ScenarioView") -> str | None:
    known = any(step.counts for step in scenario.steps())
    return None if known else "what each rank's mean is over was not seen"


def _derivatives(scenario: "ScenarioView") -> str | None:
    return None if scenario.seen.derivatives is not None else "numerical derivatives were not taken"


def _reference(scenario: "ScenarioView") -> str | None:
    known = scenario.seen.reference is not None
    return None if known else Absent("no single-process reference was computed (run.reference=true)")


def _ended(scenario: "ScenarioView", what: str) -> str:
    failure = next((f for _, f in scenario.failures if not f.collateral), None)
    return f"{what}: a rank {failure.kind} in {failure.phase}" if failure else what


ASPECTS: dict[str, Callable[["ScenarioView"], str | None]] = {
    "calls": _calls,
    "gradients": _gradients,
    "uses": _uses,
    "ties": _ties,
    "differences": _differences,
    "ranks": _ranks,
    "loss": _loss,
    "terms": _terms,
    "outputs": _outputs,
    "model": _model,
    "sizes": _sizes,
    "optimizer": _optimizer,
    "steps": _steps,
    "buffers": _buffers,
    "activations": _activations,
    "checkpoints": _checkpoints,
    "clips": _clips,
    "layouts": _layouts,
    "batchnorm": _batchnorm,
    "branches": _branches,
    "counts": _counts,
    "derivatives": _derivatives,
    "reference": _reference,
}
