"""Findings as machines want them: identity, order, level, place."""

import hashlib
import json
from collections.abc import Iterable

from ddplint.evidence import Place
from ddplint.render.wording import place_of
from ddplint.report import KINDS, SEVERITIES, Finding, Report


def fingerprint(finding: Finding) -> str:
    """Stable from run to run and when lines move; the report's own where it has one."""
    if finding.fingerprint:
        return finding.fingerprint
    subjects = [getattr(finding, kind) for kind in KINDS]
    identity = [finding.rule, finding.scenarios, subjects, finding.cause.kind if finding.cause else ""]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """One per finding, unique: twins are numbered (GitLab drops an entry whose fingerprint came before)."""
    seen: dict[str, int] = {}
    unique = []
    for finding in findings:
        mark = fingerprint(finding)
        seen[mark] = seen.get(mark, 0) + 1
        unique.append(mark if seen[mark] == 1 else f"{mark}-{seen[mark]}")
    return unique


def worst_first(report: Report) -> list[Finding]:
    """The findings that count, by severity; the report's own order within one."""
    return sorted(report.open_findings, key=lambda finding: rank(finding.severity))


def rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def fails(finding: Finding, report: Report) -> bool:
    """Whether it makes the exit status 1."""
    return finding.accepted is None and rank(finding.severity) <= rank(report.fail_on)


def place(finding: Finding, report: Report) -> Place | None:
    """Where a viewer should open: the line of the cause, else of the module's class, else of the model's."""
    return place_of(finding) or report.place
