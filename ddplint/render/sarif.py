"""SARIF 2.1.0, for GitHub code scanning and other viewers: the line of the cause, accepted findings as suppressions."""

import json
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import quote

from ddplint.errors import CLEAN, FOUND
from ddplint.evidence import Place
from ddplint.render import findings, manual, wording
from ddplint.render.text import clean, clean_lines
from ddplint.report import KINDS, Finding, Report
from ddplint.version import VERSION

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def render(report: Report) -> str:
    rules = list(dict.fromkeys(finding.rule for finding in report.findings))
    marks = findings.fingerprints(report.findings)
    run = {
        "tool": {"driver": {"name": "ddplint", "version": report.version or VERSION,
                            "rules": [_rule(name) for name in rules]}},
        "automationDetails": {"id": f"ddplint/{quote(wording.model_name(report), safe='.')}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [_result(finding, mark, rules, report)
                    for finding, mark in zip(report.findings, marks, strict=True)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(name: str) -> dict[str, Any]:
    page = manual.page(name)
    return {
        "id": clean(name),
        "shortDescription": {"text": clean(page.summary)},
        "fullDescription": {"text": clean(page.why)},
        "help": {"text": clean_lines(page.text), "markdown": clean_lines(page.markdown)},
        "defaultConfiguration": {"level": LEVELS.get(page.severity, "none")},
        "properties": {"tags": ["ddp", "pytorch"], "precision": "very-high"},
    }


def _invocation(report: Report) -> dict[str, Any]:
    notes = [{"level": "error", "message": {"text": text}} for text in wording.broken_lines(report)]
    return {"executionSuccessful": report.exit_status in (CLEAN, FOUND), "exitCode": report.exit_status,
            "exitCodeDescription": wording.exit_meaning(report), "toolExecutionNotifications": notes}


def _result(finding: Finding, mark: str, rules: list[str], report: Report) -> dict[str, Any]:
    result = {
        "ruleId": clean(finding.rule),
        "ruleIndex": rules.index(finding.rule),
        "level": LEVELS.get(finding.severity, "none"),
        "message": {"text": _message(finding)},
        "locations": [_location(finding, findings.place(finding, report))],
        "partialFingerprints": {"primaryLocationLineHash": f"{clean(mark)}:1", "ddplint/v1": clean(mark)},
        "properties": {kind: [clean(name) for name in getattr(finding, kind)] for kind in (*KINDS, "scenarios")},
    }
    if finding.accepted is not None:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": clean(finding.accepted)}]
    return result


def _message(finding: Finding) -> str:
    lines = [wording.one_line(finding)]
    lines += [clean(finding.remedy)] if finding.remedy else []
    return "\n".join(lines)


def _location(finding: Finding, place: Place | None) -> dict[str, Any]:
    """The line of the place, and the module as a logical location; a viewer needs a physical one."""
    place = place or Place(".", 1)
    region: dict[str, Any] = {"startLine": max(place.line, 1)}
    if place.text:
        region["snippet"] = {"text": clean(place.text)}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": uri(place.file)}, "region": region}}
    if finding.group:
        location["logicalLocations"] = [{"fullyQualifiedName": clean(finding.group), "kind": "module"}]
    return location


def uri(file: str) -> str:
    """Relative paths stay relative (to the folder of the lint); absolute ones become file URIs."""
    path = quote(clean(PurePosixPath(*PurePath(file).parts) if file else "."))
    return f"file://{path}" if path.startswith("/") else path
