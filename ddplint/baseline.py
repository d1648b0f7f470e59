"""A baseline: the findings that are known, by (rule, scenario, subject); only what is new is shown and counts."""

import json
from itertools import product
from pathlib import Path
from typing import Any

from ddplint.errors import CLEAN, FOUND, ReportError
from ddplint.files import write_whole
from ddplint.report import FAIL, KINDS, PASS, SEVERITIES, Finding, Report
from ddplint.spec import ReportOptions

SCHEMA_VERSION = 1

Known = tuple[str, str, str]
"""(rule, scenario, subject): ("unused-parameter", "typical", "parameter:head.weight")."""


def compare(report: Report, options: ReportOptions) -> None:
    """Take what the baseline knows out of the report, and out of its status; with ``update_baseline`` write it first.

    Raises ReportError, with the report as it was, for a file that cannot be read, written or understood.
    """
    if not options.baseline:
        if options.update_baseline:
            raise ReportError("report.update_baseline needs report.baseline=FILE")
        return
    known = _read(options.baseline, new=options.update_baseline)
    here = {scenario.name for scenario in report.scenarios} | {""}
    found = {one for finding in report.open_findings for one in keys(finding)}
    if options.update_baseline and report.exit_status in (CLEAN, FOUND):
        report.resolved = _told(sorted(one for one in known - found if one[1] in here))
        known = found | {one for one in known if one[1] not in here}       # what was not run is not resolved
        _write(options.baseline, known)
        report.notes.append(f"wrote the baseline {options.baseline}")
    else:
        report.resolved = _told(sorted(one for one in known - found if one[1] in here))
    _take_out(report, known, options.baseline)


def keys(finding: Finding) -> set[Known]:
    subjects = [f"{kind[:-1]}:{name}" for kind in KINDS for name in getattr(finding, kind)] or [""]
    return {(finding.rule, scenario, subject) for scenario, subject in product(finding.scenarios or [""], subjects)}


def _take_out(report: Report, known: set[Known], file: str) -> None:
    """A finding with anything new stays whole: its parts belong together."""
    old = [finding for finding in report.open_findings if keys(finding) <= known]
    if not old:
        return
    report.findings = [finding for finding in report.findings if not any(finding is one for one in old)]
    report.known += len(old)
    report.notes.append(f"{len(old):,} known {'finding is' if len(old) == 1 else 'findings are'} in the baseline {file}")
    _pass_items(report, old)
    worst = SEVERITIES[:SEVERITIES.index(report.fail_on) + 1] if report.fail_on in SEVERITIES else SEVERITIES
    if report.exit_status == FOUND and not any(finding.severity in worst for finding in report.open_findings):
        report.exit_status = CLEAN


def _pass_items(report: Report, old: list[Finding]) -> None:
    """A checklist item fails no more where all that speaks against it is known."""
    told_before = {rule for finding in old for rule in (finding.rule, *finding.explains)}
    told_now = {rule for finding in report.open_findings for rule in (finding.rule, *finding.explains)}
    for item in report.items:
        rules = set(item.rules) or {item.id}
        if item.verdict == FAIL and rules & told_before and not rules & told_now:
            item.verdict, item.because = PASS, "but for what the baseline knows"


def _told(gone: list[Known]) -> list[str]:
    """A line per rule and scenario."""
    groups: dict[tuple[str, str], list[str]] = {}
    for rule, scenario, subject in gone:
        groups.setdefault((rule, scenario), []).append(subject.partition(":")[2] or "the run")
    return [f"{rule}{f' in {scenario}' if scenario else ''}: {', '.join(names[:6])}"
            + (f", +{len(names) - 6:,} more" if len(names) > 6 else "") for (rule, scenario), names in groups.items()]


def _read(file: str, *, new: bool) -> set[Known]:
    try:
        body = json.loads(Path(file).read_text(encoding="utf-8"))
        return {_known(entry) for entry in body["findings"]}
    except FileNotFoundError as error:
        if new:
            return set()
        raise ReportError(f"report.baseline: {file} does not exist; report.update_baseline=true writes it") from error
    except OSError as error:
        raise ReportError(f"report.baseline: {file} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ReportError(f"report.baseline: {file} is no baseline of ddplint; "
                          "delete it and write it again with report.update_baseline=true") from error


def _known(entry: dict[str, Any]) -> Known:
    key = entry["rule"], entry["scenario"], entry["subject"]
    if not all(isinstance(part, str) for part in key):
        raise TypeError(key)
    return key


def _write(file: str, known: set[Known]) -> None:
    """One entry per line and sorted, so that a review shows what changed."""
    lines = [json.dumps(dict(zip(("rule", "scenario", "subject"), one, strict=True))) for one in sorted(known)]
    text = f'{{"schema_version": {SCHEMA_VERSION}, "tool": "ddplint", "findings": [\n' + ",\n".join(lines) + "\n]}\n"
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise ReportError(f"report.baseline: {file} cannot be written ({error.strerror})") from error
