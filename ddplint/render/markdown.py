"""Markdown for a pull request's comment or a step summary, with a Mermaid picture that GitHub and GitLab draw."""

import html
from collections.abc import Iterable

from ddplint.render import findings, usage, wording
from ddplint.render.text import clean, listed
from ddplint.report import Finding, GraphPicture, Report

LIMIT = 50              # findings in full; a comment holds 65,536 characters
NAMES = 12
BOXES = 60
ICONS = {"error": "❌ error", "warning": "⚠️ warning", "note": "ℹ️ note"}
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]#~|"} | {"<": "&lt;", "&": "&amp;", "@": "@\u200b"})


def render(report: Report) -> str:
    return "\n".join(_lines(report)).rstrip("\n") + "\n"


def text(value: object) -> str:
    """Inert prose: no markup, no HTML, no mention."""
    return clean(value).translate(_SPECIAL)


def html_text(value: object) -> str:
    """Inert text within an HTML block, where Markdown is not read."""
    return html.escape(clean(value))


def code(value: object) -> str:
    """A code span, also inside a table: the fence is longer than any run of backticks within."""
    inner = clean(value).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in _runs(inner)), default=0))
    pad = " " if inner.startswith("`") or inner.endswith("`") or not inner else ""
    return f"{fence}{pad}{inner}{pad}{fence}"


def _runs(inner: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in inner).split()


def _lines(report: Report) -> Iterable[str]:
    yield f"## ddplint: {report.verdict}"
    yield ""
    yield f"{text(wording.verdict_line(report))}. {text(wording.ddp_summary(report))}."
    shown = findings.worst_first(report)
    for finding in shown[:LIMIT]:
        yield from _finding(finding, report)
    if len(shown) > LIMIT:
        yield f"\n{len(shown) - LIMIT:,} more findings are in the JSON report."
    yield from _ddp(report)
    yield from _settings(report)
    yield from _checklist(report)
    yield from _accepted(report)
    if report.graph:
        yield from _mermaid(max(report.graph, key=lambda picture: picture.marked))
    yield from _usage(report)
    yield f"\nExit status {report.exit_status}: {text(wording.exit_meaning(report))}."


def _finding(finding: Finding, report: Report) -> Iterable[str]:
    yield ""
    yield f"### {ICONS.get(finding.severity, text(finding.severity))}: {text(wording.headline(finding))}"
    yield ""
    place = findings.place(finding, report)
    yield f"- rule: {code(finding.rule)}"
    if reason := wording.why(finding):
        yield f"- why: {text(reason)}"
    if place is not None:
        yield f"- where: {code(wording.spot(place))}" + (f" {code(place.text)}" if place.text else "")
    if scope := wording.scope(finding):
        yield f"- when: {text(scope)}"
    for kind in wording.kinds_of(finding):
        names = getattr(finding, kind)
        yield f"- {wording.counted(kind, names)}: {listed([code(name) for name in names], NAMES)}"
    if finding.remedy:
        yield f"- **do: {text(finding.remedy)}**"


def _ddp(report: Report) -> Iterable[str]:
    failed = wording.outcomes(report, ok=False)
    if failed:
        yield "\n| scenario | DDP |\n|-|-|"
        yield from (f"| {listed([code(name) for name in names], NAMES)} | {text(line)} |" for names, line in failed)


def _settings(report: Report) -> Iterable[str]:
    for title, lines in (("DDP settings that fit", wording.settings(report)), ("Remarks", wording.remarks(report))):
        if lines:
            yield f"\n**{title}**\n"
            yield from (f"- {text(line)}" for line in lines)


def _checklist(report: Report) -> Iterable[str]:
    if report.items:
        yield from _fold(f"Checklist: {wording.item_counts(report)}", ["| verdict | item |", "|-|-|", *(
            f"| {text(item.verdict).upper()} | {text(wording.item_line(item))} |" for item in wording.sorted_items(report))])


def _accepted(report: Report) -> Iterable[str]:
    accepted = wording.accepted_findings(report)
    if accepted:
        yield from _fold(f"{len(accepted)} accepted", [
            f"- {code(finding.rule)} {text(wording.headline(finding))}: {text(finding.accepted)}" for finding in accepted])


def _usage(report: Report) -> Iterable[str]:
    rows = [row for row in usage.rows(report) if not row.always][:LIMIT]
    names = usage.scenario_names(report)
    if rows and len(names) <= 12:
        table = ["| module | " + " | ".join(code(name) for name in names) + " |", "|-" * (len(names) + 1) + "|"]
        table += [f"| {code(row.label)} | " + " | ".join(map(usage.cell_text, row.cells)) + " |" for row in rows]
        yield from _fold("Gradients by module and scenario", table)


def _fold(summary: str, body: list[str]) -> Iterable[str]:
    yield f"\n<details><summary>{html_text(summary)}</summary>\n"
    yield from body
    yield "\n</details>"


# Mermaid

SHAPES = {"module": ("[", "]"), "output": ("([", "])"), "term": ("{{", "}}"), "total": ("[[", "]]")}


def _mermaid(picture: GraphPicture) -> Iterable[str]:
    boxes = picture.boxes[:BOXES]
    ids = {(box.kind, box.name): f"n{i}" for i, box in enumerate(boxes)}
    yield f"\n<details open><summary>Module graph of {html_text(picture.scenario)}</summary>\n\n```mermaid\nflowchart TD"
    for box in boxes:
        left, right = SHAPES.get(box.kind, SHAPES["module"])
        state = "" if box.state == "used" else f" ({box.state})"
        yield f'  {ids[box.kind, box.name]}{left}"{_label(box.name + state)}"{right}'
    for link in picture.links:
        if link.source in ids and link.target in ids:
            arrow = f'-. "{_label(link.label or "cut")}" .->' if link.cut else "-->"
            yield f"  {ids[link.source]} {arrow} {ids[link.target]}"
    yield "  classDef unused stroke:#b3161f,stroke-dasharray:5 3"
    yield "  classDef differs stroke:#6b3fa0,stroke-dasharray:2 2"
    for state in ("unused", "differs"):
        marked = [ids[box.kind, box.name] for box in boxes if box.state == state]
        if marked:
            yield f"  class {','.join(marked)} {state}"
    yield "```\n\n</details>"


def _label(name: str) -> str:
    """Mermaid reads HTML entities, ``#`` codes and Markdown in labels: letters, digits and plain signs only."""
    return "".join(char if char.isalnum() or char in " ._-(),:/=" else f"#{ord(char)};" for char in clean(name)[:60])
