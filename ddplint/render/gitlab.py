"""GitLab Code Quality: a JSON array; the widget shows the findings that a merge request adds."""

import json

from ddplint.render import findings, wording
from ddplint.render.text import clean
from ddplint.report import Report

SEVERITIES = {"error": "critical", "warning": "minor", "note": "info"}


def render(report: Report) -> str:
    shown = findings.worst_first(report)
    entries = []
    for finding, mark in zip(shown, findings.fingerprints(shown), strict=True):
        place = findings.place(finding, report)
        entries.append({
            "description": wording.one_line(finding),
            "check_name": clean(finding.rule),
            "fingerprint": clean(mark),
            "severity": SEVERITIES.get(finding.severity, "info"),
            "location": {"path": clean(place.file) if place else ".", "lines": {"begin": max(place.line, 1) if place else 1}},
        })
    return json.dumps(entries, indent=1) + "\n"
