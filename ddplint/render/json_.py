"""The JSON report: ``schema_version`` 1, an interface that others rely on (a change adds keys)."""

import dataclasses
import json
import math
from typing import Any

from ddplint.evidence import Cause
from ddplint.report import Finding, ItemVerdict, Report, ScenarioResult, Setting
from ddplint.version import VERSION

SCHEMA_VERSION = 1


def render(report: Report) -> str:
    """A line per finding, item, scenario and parameter. Pure ASCII, so that no name can act on whoever prints it."""
    return "{\n" + ",\n".join(f"{_text(key)}: {_spread(value)}" for key, value in to_dict(report).items()) + "\n}\n"


def _spread(value: Any) -> str:
    """A list of mappings, or a mapping of lists or mappings, with a line for each member; anything else as it is."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(_text, value)) + "\n]"
    if isinstance(value, dict) and any(isinstance(member, dict | list) for member in value.values()):
        return "{\n  " + ",\n  ".join(f"{_text(str(key))}: {_text(member)}" for key, member in value.items()) + "\n}"
    return _text(value)


def _text(value: Any) -> str:
    """Numbers that JSON lacks (NaN, inf) are null."""
    try:
        return json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, default=str)


def to_dict(report: Report) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ddplint", "version": report.version or VERSION},
        "exit_status": report.exit_status,
        "spec": report.spec,
        "items": [_item(item) for item in report.items],
        "findings": [_finding(finding) for finding in report.findings],
        "scenarios": [_scenario(scenario) for scenario in report.scenarios],
        "settings": {name: _setting(setting) for name, setting in report.settings.items()},
        "usage": report.usage,
        "broken": report.broken,
        "unmatched_acceptances": report.unmatched_acceptances,
        "notes": report.notes,
        "fail_on": report.fail_on,
        "known": report.known,
        "resolved": report.resolved,
        "ledger": [dataclasses.asdict(row) for row in report.ledger],
        "depths": [dataclasses.asdict(depth) for depth in report.depths],
        "term_flows": [dataclasses.asdict(flow) for flow in report.term_flows],
    }


def _item(item: ItemVerdict) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "verdict": item.verdict, "examined": item.examined,
            "because": item.because, "rules": item.rules, "absent": item.absent}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule, "severity": finding.severity, "message": finding.message, "remedy": finding.remedy,
        "group": finding.group, "parameters": finding.parameters, "outputs": finding.outputs, "terms": finding.terms,
        "modules": finding.modules, "elements": finding.elements, "scenarios": finding.scenarios,
        "ranks": finding.ranks, "steps": finding.steps, "cause": _cause(finding.cause), "accepted": finding.accepted,
        "explains": finding.explains, "fingerprint": finding.fingerprint,
        "place": {"file": finding.place.file, "line": finding.place.line} if finding.place else None,
    }


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    place = cause.place
    return {
        "kind": cause.kind, "text": cause.text,
        "file": place.file if place else None, "line": place.line if place else None,
        "function": place.function if place else None, "source": place.text if place else None,
        "operation": cause.operation, "module": cause.module, "outputs": cause.outputs, "terms": cause.terms,
        "also": cause.also,
    }


def _scenario(scenario: ScenarioResult) -> dict[str, Any]:
    return {"name": scenario.name, "ddp": {"outcome": scenario.outcome, "ranks": scenario.ranks,
                                           "step": scenario.step, "message": scenario.message},
            "spec": scenario.spec,
            "devices": {str(rank): dataclasses.asdict(device) for rank, device in scenario.devices.items()}}


def _setting(setting: Setting) -> dict[str, Any]:
    return {"value": setting.value, "because": setting.because, "tried": setting.tried}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
