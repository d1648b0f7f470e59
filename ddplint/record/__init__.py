"""The verb: a Spec becomes Evidence. The only folder that imports torch, and only in the ranks' processes."""

import dataclasses
from typing import Any, Protocol

from ddplint.errors import Interrupted, SpecError, StartError
from ddplint.evidence import Evidence, Model, ScenarioSeen
from ddplint.launch import is_launched
from ddplint.record.assemble import add_foreseen, arms, scenario_seen, was_cut_off
from ddplint.record.by_term import add_by_term, asks_by_term
from ddplint.record.discover import STEPS, discover, pasted
from ddplint.record.gang import Gang
from ddplint.record.inquire import requests
from ddplint.record.join import Launch, ranks
from ddplint.record.settings import try_settings
from ddplint.record.simulate.recording import CAUSES, simulated
from ddplint.spec import Spec
from ddplint.version import VERSION


class Listener(Protocol):
    """Who is told how the recording goes (progress.Progress)."""

    def scenario(self, name: str, index: int, total: int) -> None: ...
    def phase(self, rank: int, step: int | None, phase: str) -> None: ...
    def done(self, name: str, outcome: str) -> None: ...


def record(spec: Spec, progress: Listener | None = None) -> Evidence:
    """Run every scenario of the spec under real DDP and look for the causes of what was missed.

    SpecError where a rank finds the spec itself at fault (no such target, an unknown keyword of DDP). On Ctrl-C
    Interrupted, and StartError where no rank can be started (any more): with the scenarios that came to their end.
    """
    evidence = Evidence(_summary(spec), version=VERSION)
    on_phase = progress.phase if progress else None
    try:
        with ranks(spec, on_phase) as gang:
            evidence.spec["world_size"] = gang.spec.run.world_size       # a launch brings its own
            if not spec.explore:
                _record_all(gang.spec, gang, evidence, progress)
        if spec.explore:
            _explore(spec, on_phase, evidence, progress)
    except KeyboardInterrupt:
        raise Interrupted(evidence if evidence.scenarios else None) from None
    except StartError as error:
        error.evidence = evidence if evidence.scenarios else None
        raise
    return evidence


def _explore(spec: Spec, on_phase: Any, evidence: Evidence, progress: Listener | None) -> None:
    """Search, then record what was found like any other scenario."""
    if spec.run.engine != "local" or is_launched():
        raise SpecError("explore needs ranks of its own", where="scenario.explore", hint="run.engine=local, without torchrun")
    with ranks(dataclasses.replace(spec, run=dataclasses.replace(spec.run, steps=STEPS)), on_phase) as gang:
        found = discover(gang.spec, gang)
    evidence.spec["explored"] = [pasted(name, scenario) for name, scenario in found.items()]
    spec = dataclasses.replace(spec, scenarios={**spec.scenarios, **found}, lint=(*spec.lint, *found))
    with ranks(spec, on_phase) as gang:
        _record_all(gang.spec, gang, evidence, progress)


def _record_all(spec: Spec, gang: Gang | Launch, evidence: Evidence, progress: Listener | None) -> None:
    for index, name in enumerate(spec.lint):
        if progress:
            progress.scenario(name, index, len(spec.lint))
        _record_scenario(spec, name, gang, evidence)
        if progress:
            progress.done(name, evidence.scenarios[-1].outcome.outcome)
    if spec.run.causes:
        _find_causes(spec, gang, evidence)
    if _asks_for_derivatives(spec):
        _add_derivatives(gang, evidence)
    if asks_by_term(spec):
        add_by_term(gang, evidence)
    if spec.run.reference and spec.run.engine != "simulate":
        _add_references(spec, gang, evidence)
    if (spec.run.try_settings or spec.run.try_remedies) and spec.run.engine != "simulate":
        try_settings(spec, gang, evidence)


def _summary(spec: Spec) -> dict[str, Any]:
    return {"model": spec.model.get("_target_", ""), "world_size": spec.run.world_size, "steps": spec.run.steps,
            "engine": spec.run.engine, "ddp": dict(spec.ddp), "seed": spec.run.seed,
            **({} if spec.run.causes else {"causes": False})}


def _record_scenario(spec: Spec, name: str, gang: Gang | Launch, evidence: Evidence) -> None:
    if spec.run.engine == "simulate":
        transcripts, seen, model = simulated(spec, name, gang)
    else:
        transcripts = gang.run("ddplint.record.observe:run_scenario", scenario=name)
        seen, model = None, None
    for kind, body in (message for t in transcripts for message in t.messages):
        if kind == "spec-error":
            raise SpecError(body)
        if kind == "internal-error":
            raise RuntimeError(body)
        if kind == "ddp-keywords":
            evidence.spec["ddp_keywords"] = body
    if real := seen is None:
        seen, model = scenario_seen(spec, name, transcripts)
    seen.model = _position(model or Model(""), evidence.models)
    evidence.scenarios.append(seen)             # what follows may be interrupted
    if real and was_cut_off(seen) and spec.run.causes:
        foreseen = []
        for rank in seen.ranks:
            foreseen.append(gang.solo("ddplint.record.foresee:run", scenario=name, rank=rank.rank))
            add_foreseen(rank, foreseen[-1])
        seen.branches = arms([*transcripts, *foreseen])


def _position(model: Model, models: list[Model]) -> int:
    if model not in models:
        models.append(model)
    return models.index(model)


def _find_causes(spec: Spec, gang: Gang | Launch, evidence: Evidence) -> None:
    called = _called_in(evidence.scenarios)
    for seen in evidence.scenarios:
        for request in requests(seen, evidence.models[seen.model], called):
            search = CAUSES if spec.run.engine == "simulate" else "ddplint.record.solo:run"
            transcript = gang.solo(search, request=request)
            for kind, body in transcript.messages:
                if kind == "causes":
                    seen.causes |= {subject: cause for subject, cause in body.items() if subject not in seen.causes}
                elif kind == "firings":
                    _add_firings(seen, body)
                elif kind == "cut" and "failure:" not in seen.causes and not any(body.endswith(r.failure.message.split("\n")[0]) for r in seen.ranks if r.failure):
                    seen.unknown.setdefault("causes", f"the solo run raised {body}, which the real run did not")
            if (failure := transcript.failure) is not None:
                said = f"the solo run {failure.kind} in a process of its own"
                seen.unknown.setdefault("causes", f"{said}: {failure.message[:200]}" if failure.message else said)


def _add_firings(seen: ScenarioSeen, counts: dict[str, int]) -> None:
    """What the solo run counted, for the steps in which DDP gave up at the first gradient that was ready twice."""
    for rank in seen.ranks:
        for step in rank.steps:
            if rank.failure is not None and step.step == rank.failure.step:
                step.fired = counts | step.fired


def _asks_for_derivatives(spec: Spec) -> bool:
    setting = spec.judgement.rules.get("gradient-mismatch")
    asked = setting is not None and setting.severity not in (None, "off")
    return asked and spec.step is None and spec.run.engine != "simulate"


def _add_derivatives(gang: Gang | Launch, evidence: Evidence) -> None:
    for seen in evidence.scenarios:
        transcript = gang.solo("ddplint.record.derivatives:run", scenario=seen.name, rank=0)
        seen.derivatives = next((body for kind, body in transcript.messages if kind == "derivatives"), None)
        if transcript.failure is not None:
            seen.unknown["derivatives"] = f"the float64 run {transcript.failure.kind}: {transcript.failure.message[:200]}"


def _add_references(spec: Spec, gang: Gang | Launch, evidence: Evidence) -> None:
    """Beside the steps that were seen: the first one again, against one process."""
    for seen in evidence.scenarios:
        if seen.outcome.outcome != "ok":
            seen.unknown["reference"] = "the scenario does not come to its end under DDP"
            continue
        for transcript in gang.run("ddplint.record.reference:run", scenario=seen.name):
            for kind, body in transcript.messages:
                if kind == "reference":
                    seen.reference = body
                elif kind == "no-reference":
                    seen.unknown["reference"] = body
            if transcript.failure is not None and not transcript.failure.collateral:
                seen.unknown.setdefault("reference", f"the reference run {transcript.failure.kind}: {transcript.failure.message[:200]}")


def _called_in(scenarios: list[ScenarioSeen]) -> dict[str, list[str]]:
    """Module -> the scenarios in which some rank calls it."""
    called: dict[str, list[str]] = {}
    for seen in scenarios:
        for name in dict.fromkeys(n for rank in seen.ranks for graph in rank.graphs for n in graph.calls):
            called.setdefault(name, []).append(seen.name)
    return called
