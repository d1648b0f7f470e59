"""GitHub annotations: workflow commands, worst first, within what GitHub shows of one step."""

from ddplint.render import findings, wording
from ddplint.render.text import clean
from ddplint.report import Finding, Report

KINDS = {"error": "error", "warning": "warning"}
CAP = 10
"""GitHub shows ten of a kind per step and drops the rest in silence."""


def render(report: Report) -> str:
    counts: dict[str, int] = {}
    lines = []
    for finding in findings.worst_first(report):
        kind = KINDS.get(finding.severity, "notice")
        counts[kind] = counts.get(kind, 0) + 1
        # The last notice is kept free: it tells what was left out.
        if counts[kind] <= CAP - (kind == "notice"):
            lines.append(_annotation(kind, finding, report))
    hidden = sum(counts.values()) - len(lines)
    if hidden:
        lines.append(f"::notice title=ddplint::{hidden:,} more findings are in the report")
    return "".join(f"{line}\n" for line in lines)


def _annotation(kind: str, finding: Finding, report: Report) -> str:
    properties = {"title": f"ddplint: {clean(finding.rule)}"}
    place = findings.place(finding, report)
    if place is not None:
        properties = {"file": clean(place.file), "line": str(max(place.line, 1))} | properties
    remedy = f"\n{clean(finding.remedy)}" if finding.remedy else ""
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {told}::{_data(wording.one_line(finding) + remedy)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
