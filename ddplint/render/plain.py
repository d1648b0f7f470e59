"""The report in a pipe or a log: ``file:line: severity [rule] message`` lines that grep and editors read, a summary."""

from collections.abc import Iterable

from ddplint.render import findings, usage, wording
from ddplint.render.text import clean, listed, shorten_words
from ddplint.report import Finding, Report

LONGEST = 120      # characters of one name; no line is wrapped
ROWS = 16


def render(report: Report, *, verbose: bool = False) -> str:
    return "".join(f"{shorten_words(line, LONGEST)}\n" for line in _lines(report, verbose))


def _lines(report: Report, verbose: bool) -> Iterable[str]:
    for finding in report.findings:
        yield from _finding(finding, report, verbose)
    yield f"{report.verdict} {wording.verdict_line(report)}"
    yield f"ddp: {wording.ddp_summary(report)}"
    yield from (f"ddp: {clean(scenario.name)}: {wording.ddp_line(scenario)}" for scenario in report.scenarios
                if verbose or scenario.outcome != "ok")
    if report.items:
        yield f"checklist: {wording.item_counts(report)}"
    yield from (f"checklist: {clean(verdict)}: {line}" for verdict, line in wording.told_items(report, verbose=verbose))
    yield from _usage(report, verbose)
    yield from (f"setting: {line}" for line in wording.settings(report, verbose=verbose))
    yield from (f"memory: {line}" for line in (wording.device_memory(report) if verbose else []))
    yield from (f"remark: {remark}" for remark in wording.remarks(report))
    yield f"exit status {report.exit_status}: {wording.exit_meaning(report)}"


def _finding(finding: Finding, report: Report, verbose: bool) -> Iterable[str]:
    spot = wording.spot(findings.place(finding, report)) or wording.model_name(report)
    yield f"{spot}: {wording.severity_of(finding)} [{clean(finding.rule)}] {wording.one_line(finding)}"
    if finding.accepted is not None:
        yield f"    accepted: {clean(finding.accepted)}"
    yield from (f"    {label}: {names}" for label, names in wording.subject_lists(finding, None if verbose else 6))
    yield from (f"    also: {clean(also)}" for also in (finding.cause.also if finding.cause else []))
    if finding.remedy and finding.accepted is None:
        yield f"    do: {clean(finding.remedy)}"


def _usage(report: Report, verbose: bool) -> Iterable[str]:
    scenarios = usage.scenario_names(report)
    rows = [row for row in usage.rows(report) if verbose or not row.always]
    for row in rows if verbose else rows[:ROWS]:
        states: dict[str, list[str]] = {}
        for name, cell in zip(scenarios, row.cells, strict=True):
            states.setdefault(usage.cell_text(cell), []).append(clean(name))
        told = "; ".join(f"{state} in {listed(names, None if verbose else 6)}" for state, names in states.items())
        yield f"gradients: {clean(row.label)}: {told}"
    if len(rows) > ROWS and not verbose:
        yield f"gradients: {len(rows) - ROWS:,} more rows (report.verbose=true)"
