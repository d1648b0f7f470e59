"""Evidence x rules x checklist -> Report."""

import json
from typing import Any

from ddplint.check.accept import accept
from ddplint.check.apply import Active, apply
from ddplint.check.expect import expectations
from ddplint.check.explain import explain
from ddplint.check.group import findings
from ddplint.check.items import concerns, verdicts
from ddplint.check.raised import Raised
from ddplint.check.settings import settings
from ddplint.check.tried import add_trials
from ddplint.check.usage import usage
from ddplint.errors import CANNOT_JUDGE, CLEAN, FOUND
from ddplint.evidence import Device, Evidence
from ddplint.pictures import add_pictures
from ddplint.report import Finding, Report, ScenarioResult
from ddplint.rules import Rule, catalogue, load
from ddplint.rules.words import count, listed
from ddplint.spec import SEVERITIES, Judgement, RuleSetting
from ddplint.views import RunView, ScenarioView

__all__ = ["check"]


def check(evidence: Evidence, judgement: Judgement) -> Report:
    """Judge the evidence. Raises SpecError for options, expectations or house rules that cannot be meant."""
    run = RunView(evidence)
    sheets = {active.rule.name: apply(active, run) for active in _active(judgement)}
    sheets |= expectations(judgement.checklist, run)
    raised = [one for sheet in sheets.values() for one in sheet.raised if not sheet.broken]
    _override(raised, judgement)
    unmatched = accept(raised, judgement.accept)
    explain(raised)
    report = Report(
        exit_status=CLEAN, spec=dict(evidence.spec), items=verdicts(judgement.checklist, sheets),
        findings=findings(raised, evidence), scenarios=[_result(scenario) for scenario in run.scenarios],
        settings=settings(run), usage=usage(run), unmatched_acceptances=unmatched, fail_on=judgement.fail_on,
        broken={name: sheet.broken for name, sheet in sheets.items() if sheet.broken}, version=evidence.version,
        notes=[*_explored(evidence), *_other_jobs(evidence), *_shared_gpus(run), *_causes_not_found(evidence)])
    add_trials(report.findings, evidence.tried)
    add_pictures(report, evidence)
    report.exit_status = _status(report)
    return report


def _active(judgement: Judgement) -> list[Active]:
    """The rules that are not switched off, the shipped ones first."""
    rules = dict(catalogue())
    for name, setting in judgement.rules.items():
        if setting.target is not None:
            rules[name] = _renamed(load(setting.target, f"rules.{name}"), name)
    wanted = {name for item in judgement.checklist if item.severity not in (None, "off") for name in item.rules}
    active = []
    for name, rule in rules.items():
        setting = judgement.rules.get(name, RuleSetting())
        severity = setting.severity or rule.severity
        # A problem whose severity is settled by an item or by itself must not be lost because the rule is off.
        if severity != "off" or (setting.severity is None and name in wanted):
            active.append(Active(rule, severity, setting.ignore, rule.configured(setting.options)))
    return active


def _renamed(rule: Rule, name: str) -> Rule:
    return Rule(name, rule.function, rule.severity, rule.checks, rule.specific, rule.among)


def _override(raised: list[Raised], judgement: Judgement) -> None:
    """The user's severity for a rule replaces what the rule says; that of a checklist item replaces both."""
    for one in raised:
        setting = judgement.rules.get(one.rule.name)
        if setting is not None and setting.severity is not None:
            one.severity = setting.severity
        for item in judgement.checklist:
            if item.severity is not None and one.rule.name in item.rules and concerns(item, one):
                one.severity = item.severity
    raised[:] = [one for one in raised if one.severity != "off"]


def _result(scenario: ScenarioView) -> ScenarioResult:
    outcome = scenario.outcome
    return ScenarioResult(scenario.name, outcome.outcome, list(outcome.ranks), outcome.step, outcome.message,
                          dict(scenario.seen.spec), _devices(scenario))


def _devices(scenario: ScenarioView) -> dict[int, Device]:
    return {rank.rank: rank.device for rank in scenario.ranks if rank.device is not None}


def _shared_gpus(run: RunView) -> list[str]:
    """Where not NCCL was run, but gloo."""
    gpus = {rank: device.name for scenario in run.scenarios for rank, device in _devices(scenario).items() if device.backend == "gloo"}
    if not gpus:
        return []
    told = f"{count(len(gpus), 'rank')} on {count(len(set(gpus.values())), 'GPU')}"
    return [f"gloo over CUDA tensors, {told}: NCCL, which needs a GPU for each rank, was not run"]


def _explored(evidence: Evidence) -> list[str]:
    """What a search found, as scenarios to paste."""
    found = evidence.spec.get("explored")
    if found is None:
        return []
    return [f"explore: another way through the model, to keep in configs/scenario: {line}" for line in found] or [
        "explore: no input that was tried takes another way through the model"]


def _other_jobs(evidence: Evidence) -> list[str]:
    """What was different where a sweep ran a scenario more than once, as it is typed."""
    jobs: dict[str, list[str]] = {}
    for seen in evidence.scenarios:
        if typed := " ".join(_typed(seen.spec, evidence.spec)):
            jobs.setdefault(typed, []).append(seen.name)
    return [f"{listed(names)} ran with {typed}" for typed, names in jobs.items()]


def _typed(own: dict[str, Any], common: dict[str, Any]) -> list[str]:
    """A job's overrides against the sweep's first."""
    keywords, first = own.get("ddp") or {}, common.get("ddp") or {}
    run = {f"run.{key}": value for key, value in own.items() if key not in ("model", "ddp")}
    ddp = {f"ddp.{key}": keywords.get(key) for key in ({*keywords, *first} if "ddp" in own else ()) if keywords.get(key) != first.get(key)}
    model = {"model": own["model"]} if "model" in own else {}
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in sorted((model | run | ddp).items())]


def _causes_not_found(evidence: Evidence) -> list[str]:
    """Where a finding stands without its cause because it could not be looked for."""
    return [f"scenario {seen.name}: causes could not be looked for ({why})" for seen in evidence.scenarios
            if (why := seen.unknown.get("causes"))]


def _status(report: Report) -> int:
    if report.broken or not report.scenarios:
        return CANNOT_JUDGE
    if any(_fails(finding, report.fail_on) for finding in report.findings):
        return FOUND
    return CANNOT_JUDGE if any(scenario.outcome == "unknown" for scenario in report.scenarios) else CLEAN


def _fails(finding: Finding, fail_on: str) -> bool:
    return finding.accepted is None and SEVERITIES.index(finding.severity) <= SEVERITIES.index(fail_on)


