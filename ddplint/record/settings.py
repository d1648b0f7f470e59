"""Settings and remedies, tried one at a time under real DDP: what it did, and what a step costs.

``run.try_settings`` tries DDP's keywords; ``run.try_remedies`` also what the findings' remedies say that a program can
do by itself: freezing what never gets a gradient, adding a dropped term, changing requires_grad before the wrap, one
order of registration, checkpoints without reentry.
"""

import json
import statistics
from collections import Counter

from ddplint.evidence import Evidence, ScenarioSeen
from ddplint.record.assemble import scenario_seen
from ddplint.record.gang import Gang
from ddplint.record.remedy import AS_IT_IS, Remedy
from ddplint.spec import Spec
from ddplint.views import RunView

KEYWORDS = (("find_unused_parameters", True), ("find_unused_parameters", False), ("static_graph", True),
            ("static_graph", False), ("gradient_as_bucket_view", True))


def try_settings(spec: Spec, gang: Gang, evidence: Evidence) -> None:
    """Run every scenario again with each change, all else as the spec has it, and note it in ``evidence.tried``."""
    trials = _remedies(evidence) if spec.run.try_remedies else {}
    trials |= {f"{keyword}={json.dumps(value)}": _keyword(spec, keyword, value) for keyword, value in KEYWORDS}
    fitting = AS_IT_IS if _fit(evidence.scenarios) else None
    for name, remedy in trials.items():
        seen = evidence.scenarios if remedy == AS_IT_IS else [_run(spec, scenario, remedy, gang) for scenario in spec.lint]
        evidence.tried[name] = _told(seen)
        if not _fit(seen) or remedy == AS_IT_IS:
            continue
        if fitting is None:                     # the spec's own settings fail: the first that fits is the measure
            fitting, measure = remedy, name
        elif fitting != remedy:
            beside = "" if fitting == AS_IT_IS else f" as with {measure}"
            evidence.tried[name] += cost(gang, spec.lint[0], fitting, remedy, beside)


def _remedies(evidence: Evidence) -> dict[str, Remedy]:
    """What the evidence gives reason to try."""
    found, run = {}, RunView(evidence)
    if run.never:
        found["freeze"] = Remedy(freeze=tuple(run.never))
    if dropped := _dropped(run):
        found["add"] = Remedy(add=tuple(dropped))
    if changed := _changed(run):
        found["change before the wrap"] = Remedy(freeze=tuple(name for name, trainable in changed.items() if trainable),
                                                 thaw=tuple(name for name, trainable in changed.items() if not trainable))
    if any(mismatch.what == "order" for scenario in run.scenarios for mismatch in scenario.mismatches):
        found["sort"] = Remedy(sort=True)
    if any(event.detail == "reentrant" for scenario in run.scenarios for _, event in scenario.events("checkpoint")):
        found["use_reentrant=False"] = Remedy(nonreentrant=True)
    return found


def _dropped(run: RunView) -> dict[str, None]:
    """Loss terms with a graph that add nothing to the total of a scenario; of the user's own step the total is not ours to change."""
    return dict.fromkeys(term.name for scenario in run.scenarios if not scenario.seen.custom_step
                         for term in scenario.terms if term.differentiable and not term.contributes_at)


def _changed(run: RunView) -> dict[str, bool]:
    """The parameters whose requires_grad changed once after the wrap: whether each was trainable then."""
    found: dict[str, bool] = {}
    for scenario in run.scenarios:
        trainable = {p.name: p.trainable for p in scenario.model.parameters}
        for rank in scenario.ranks:
            names = Counter(change.parameter for change in rank.changes if change.what == "requires_grad")
            found |= {name: trainable[name] for name, times in names.items() if times == 1 and name in trainable}
    return found


def _keyword(spec: Spec, keyword: str, value: bool) -> Remedy:
    return AS_IT_IS if bool(spec.ddp.get(keyword, False)) == value else Remedy(ddp={keyword: value})


def _run(spec: Spec, name: str, remedy: Remedy, gang: Gang) -> ScenarioSeen:
    transcripts = gang.run("ddplint.record.observe:run_scenario", scenario=name, remedy=remedy)
    return scenario_seen(spec, name, transcripts)[0]


def _fit(seen: list[ScenarioSeen]) -> bool:
    return all(scenario.outcome.outcome == "ok" for scenario in seen)


def _told(seen: list[ScenarioSeen]) -> str:
    failed = [s for s in seen if s.outcome.outcome != "ok"]
    if failed:
        first = failed[0]
        message = first.outcome.message.splitlines()[0][:120] if first.outcome.message else first.outcome.outcome
        return f"DDP fails in {len(failed)} of {len(seen)} scenarios (first in '{first.name}': {message})"
    unlike = next((f", but {mismatch.text}" for s in seen for mismatch in s.mismatches), "")
    return (f"DDP ran all {len(seen)} scenarios" if len(seen) > 1 else "DDP ran the scenario") + unlike


def cost(gang: Gang, scenario: str, base: Remedy, changed: Remedy, beside: str = "") -> str:
    """What a step takes: pairs of steps, taken in turn in the same ranks. Empty where that did not come to its end."""
    transcripts = gang.run("ddplint.record.cost:run", scenario=scenario, variants=[base, changed])
    times = next((body for t in transcripts for kind, body in t.messages if kind == "times"), None)
    return "" if times is None else f"; {compared(*times, beside)} (scenario '{scenario}')"


def compared(base: list[float], changed: list[float], beside: str = "") -> str:
    """The ratio of paired steps: its median, and the quartiles as its spread."""
    ratios = [b / a for a, b in zip(base, changed, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    verdict = ": no difference beyond the spread" if low <= 1 <= high else ""
    return (f"a step took {middle:.2f} x as long{beside}, quartiles {low:.2f}-{high:.2f} over {len(ratios)} pairs of steps "
            f"in turn{verdict}")
