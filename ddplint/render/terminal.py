"""The report on a terminal: the five questions on one screen.

What is wrong, why, where, what DDP did, what to do. In a pipe it is plain lines instead (see ``plain``).
"""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ddplint.errors import CANNOT_JUDGE, CLEAN, FOUND
from ddplint.render import usage, wording
from ddplint.render.text import clean, listed, shorten, shorten_words
from ddplint.report import BROKEN, FAIL, NOT_CHECKED, PASS, Finding, Report, use_kind

STYLES = {
    "error": "bold red", "warning": "bold yellow", "note": "cyan", "accepted": "cyan",
    PASS: "green", FAIL: "bold red", NOT_CHECKED: "yellow", BROKEN: "bold red",
    0: "bold green", 1: "bold red", 2: "bold yellow",
    "always": "green", "never": "bold red", "sometimes": "yellow", "differs": "bold yellow", "unseen": "dim",
}
LISTED = 6         # names per finding, rows per table: enough to recognise the group, and verbose lists all
TABLE_ROWS = 16
LONGEST_PATH = 240


def render(report: Report, *, verbose: bool = False, width: int = 80, colour: bool = False) -> str:
    """The report for a terminal ``width`` columns wide, with ANSI colours where ``colour`` is set."""
    console = Console(file=io.StringIO(), width=width, force_terminal=colour, color_system="standard" if colour else None,
                      markup=False, highlight=False, emoji=False, legacy_windows=False, _environ={})
    return render_on(console, report, verbose=verbose)


def render_on(console: Console, report: Report, *, verbose: bool = False) -> str:
    """As ``render``, with the width and colours of ``console``, which prints nothing itself."""
    with console.capture() as captured:
        for block in _blocks(report, verbose, console.width):
            console.print(block)
    lines = captured.get().split("\n")
    return "\n".join(line.rstrip(" ") for line in lines)


def _blocks(report: Report, verbose: bool, width: int) -> Iterable:
    yield Text.assemble((report.verdict, STYLES[_status(report)]), "  ",
                        shorten_words(wording.verdict_line(report), max(width - 12, 24)))
    findings = report.findings if verbose else report.open_findings
    for finding in findings:
        yield ""
        yield from _finding(finding, verbose, width)
    yield ""
    yield from _accepted(report, verbose, width)
    yield from _ddp(report, verbose, width)
    yield from _checklist(report, verbose, width)
    yield from _usage(report, verbose, width)
    yield from _section("DDP settings that fit", wording.settings(report, verbose=verbose), width)
    yield from _section("Device memory at its peak", wording.device_memory(report) if verbose else [], width)
    yield from _section("Remarks", wording.remarks(report), width)
    yield Text(f"exit status {report.exit_status}: {wording.exit_meaning(report)}", style="dim")


def _status(report: Report) -> int:
    return report.exit_status if report.exit_status in (CLEAN, FOUND) else CANNOT_JUDGE


def _finding(finding: Finding, verbose: bool, width: int) -> Iterable:
    severity = wording.severity_of(finding)
    yield Text.assemble((f"{severity} [{clean(finding.rule)}]", STYLES.get(severity, "bold")), " ",
                        _fit(wording.headline(finding), width))
    for label, text in _answers(finding, verbose):
        # A path is folded rather than cut: it is there to be copied.
        fitted = shorten_words(text, LONGEST_PATH) if label == "where" else _fit(text, width - 12)
        if text:
            yield _labelled(f"{label:8}", fitted, "dim")


def _answers(finding: Finding, verbose: bool) -> Iterable[tuple[str, str]]:
    """The questions in their order, each with its answer ("" where there is none)."""
    for label, names in wording.subject_lists(finding, None if verbose else LISTED):
        yield "what", f"{label}: {names}"
    yield "why", wording.why(finding)
    place = wording.place_of(finding)
    yield "where", wording.spot(place) + (f"  {clean(place.text)}" if place is not None and place.text else "")
    yield "where" if place is None else "", wording.scope(finding)
    yield from (("also", clean(also)) for also in (finding.cause.also if finding.cause else []))
    yield "do", clean(finding.remedy)
    yield "explains", wording.explained(finding) if verbose else ""
    yield "because", clean(finding.accepted or "")


def _labelled(label: str, text: str, style: str, *, one_line: bool = False) -> Padding:
    """A label and a paragraph with a hanging indent, or what of it fits on one line."""
    if one_line:
        return Padding(Text.assemble((label, style), " ", text, no_wrap=True, overflow="ellipsis"), (0, 0, 0, 2))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=style), Text(text))
    return Padding(grid, (0, 0, 0, 2))


def _fit(text: str, width: int) -> str:
    """Names longer than a line lose their middle; the rest wraps."""
    return shorten_words(text, max(width - 8, 24))


def _ddp(report: Report, verbose: bool, width: int) -> Iterable:
    yield Text(wording.ddp_summary(report), style="bold")
    told = [(names, line, "bold red") for names, line in wording.outcomes(report, ok=False)]
    told += [(names, line, "green") for names, line in wording.outcomes(report, ok=True)] if verbose else []
    for names, line, style in told:
        scenarios = listed([shorten(name, max(width // 3, 12)) for name in names], None if verbose else LISTED)
        yield Padding(Text.assemble(f"{scenarios}: ", (_fit(line, width), style)), (0, 0, 0, 2))


def _checklist(report: Report, verbose: bool, width: int) -> Iterable:
    if report.items:
        yield Text(f"Checklist: {wording.item_counts(report)}", style="bold")
    for verdict, line in wording.told_items(report, verbose=verbose):
        # What fails is told by the findings above: one line is enough to recognise it.
        yield _labelled(f"{clean(verdict).upper():11}", _fit(line, width - 14), STYLES.get(verdict, ""),
                        one_line=verdict == FAIL and not verbose)


def _accepted(report: Report, verbose: bool, width: int) -> Iterable:
    lines = [f"[{clean(finding.rule)}] {wording.headline(finding)}; accepted: {clean(finding.accepted)}"
             for finding in wording.accepted_findings(report)]
    yield from _section("Accepted", [] if verbose else lines, width)        # verbose lists them in full


def _section(title: str, lines: list[str], width: int) -> Iterable:
    if lines:
        yield Text(title, style="bold")
    yield from (Padding(Text(_fit(line, width)), (0, 0, 0, 2)) for line in lines)


def _usage(report: Report, verbose: bool, width: int) -> Iterable:
    every = usage.rows(report)
    shown = every if verbose else [row for row in every if not row.always]
    if not shown:
        return
    yield Text("Gradients by module and scenario (share of steps, by rank)", style="bold")
    scenarios = usage.scenario_names(report)
    limited = shown if verbose else shown[:TABLE_ROWS]
    table = _table(limited, scenarios, width)
    yield Padding(table if table is not None else _list(limited, scenarios, width, verbose), (0, 0, 0, 2))
    hidden, steady = len(shown) - len(limited), sum(len(row.parameters) for row in every if row not in shown)
    rest = [f"{hidden:,} more rows (report.verbose=true)"] * bool(hidden)
    rest += [f"all {steady:,} other parameters: always"] * bool(steady)
    if rest:
        yield Padding(Text("; ".join(rest), style="dim"), (0, 0, 0, 2))


def _table(rows: list[usage.Row], scenarios: list[str], width: int) -> Table | None:
    """None where the scenarios do not fit side by side."""
    columns = [max(min(len(name), 20), *(len(usage.cell_text(row.cells[i])) for row in rows))
               for i, name in enumerate(scenarios)]
    room = width - 2 - sum(column + 2 for column in columns)
    label_width = min(max(len(row.label) for row in rows), max(room, width // 3, 16))
    if label_width + sum(column + 2 for column in columns) + 2 > width:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("module", no_wrap=True)
    for name, column in zip(scenarios, columns, strict=True):
        table.add_column(shorten(clean(name), column), no_wrap=True)
    for row in rows:
        cells = [Text(usage.cell_text(cell), style=STYLES[use_kind(cell)]) for cell in row.cells]
        table.add_row(Text(shorten(clean(row.label), label_width)), *cells)
    return table


def _list(rows: list[usage.Row], scenarios: list[str], width: int, verbose: bool) -> Text:
    """One paragraph per row: each state with the scenarios that have it."""
    text = Text()
    for row in rows:
        text.append(f"{shorten(clean(row.label), max(width - 4, 16))}\n")
        states: dict[str, list[str]] = {}
        for name, cell in zip(scenarios, row.cells, strict=True):
            states.setdefault(usage.cell_text(cell), []).append(shorten(clean(name), 40))
        kinds = {usage.cell_text(cell): use_kind(cell) for cell in row.cells}
        for state, names in states.items():
            text.append("  ")
            text.append(state, style=STYLES[kinds[state]])
            text.append(f": {listed(names, None if verbose else LISTED)}\n")
    text.rstrip()
    return text
