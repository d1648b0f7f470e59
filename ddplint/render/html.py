"""One self-contained HTML page: no network, no script; the verdict first, then the pictures."""

import functools
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from ddplint.render import findings, heatmap, ledger, manual, svg, wording
from ddplint.render.text import clean, clean_lines
from ddplint.report import PASS, Finding, Report
from ddplint.version import VERSION

NAMES = 12                 # subjects shown of a finding before the rest is folded
LEDGER_MODULES = 400


def render(report: Report) -> str:
    page = _environment().get_template("page.html.jinja")
    return page.render(_context(report))


@functools.cache
def _environment() -> jinja2.Environment:
    folder = resources.files("ddplint.render")
    templates = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.html.jinja", "page.css")}
    environment = jinja2.Environment(loader=jinja2.DictLoader(templates), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, keep_trailing_newline=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["clean"] = clean
    environment.filters["clean_lines"] = clean_lines
    environment.globals["style"] = Markup(templates["page.css"])     # our own file; nothing of the user's is in it
    return environment


def _context(report: Report) -> dict[str, Any]:
    items = [(item, wording.item_line(item)) for item in wording.sorted_items(report)]
    passed = [entry for entry in items if entry[0].verdict == PASS] if report.open_findings else []
    absent = [entry for entry in items if entry[0].absent]
    ledgers = ledger.ledgers(report)
    graphs = sorted(report.graph, key=lambda picture: -picture.marked)
    return {
        "report": report,
        "version": report.version or VERSION,
        "title": f"{report.verdict}: {wording.model_name(report)}",
        "line": wording.verdict_line(report),
        "meaning": wording.exit_meaning(report),
        "findings": [_finding(finding, report) for finding in findings.worst_first(report)],
        "accepted": [_finding(finding, report) for finding in wording.accepted_findings(report)],
        "items": [entry for entry in items if entry not in passed + absent], "passed": passed, "absent": absent,
        "item_counts": wording.item_counts(report),
        "ddp": wording.ddp_summary(report),
        "failed": wording.outcomes(report, ok=False),
        "ran": [name for names, _ in wording.outcomes(report, ok=True) for name in names],
        "settings": wording.settings(report),
        "remarks": wording.remarks(report),
        "heat": heatmap.tables(report), "heat_scenarios": heatmap.scenarios(report), "heat_legend": heatmap.legend(),
        "graphs": [(clean(picture.scenario), svg.graph(picture)) for picture in graphs],
        "flow": svg.flow(report.depths) if report.depths else None, "flow_legend": svg.legend(report.depths),
        "term_flows": [(clean(flow.scenario), clean(flow.unknown), svg.flow(flow.depths) if flow.depths else None,
                        svg.legend(flow.depths)) for flow in report.term_flows],
        "terms_apart": bool(report.term_flows) or all(len(ledger.terms) < 2 for ledger in ledgers),
        "ledgers": ledgers, "fate": ledger.fate, "ledger_modules": LEDGER_MODULES,
        "manuals": [manual.page(rule) for rule in dict.fromkeys(finding.rule for finding in report.findings)],
    }


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    place = findings.place(finding, report)
    return {
        "finding": finding,
        "severity": wording.severity_of(finding),
        "headline": wording.headline(finding),
        "why": wording.why(finding),
        "place": place,
        "spot": wording.spot(place),
        "scope": wording.scope(finding),
        "subjects": [_subjects(kind, finding) for kind in wording.kinds_of(finding)],
        "also": [clean(also) for also in (finding.cause.also if finding.cause else [])],
        "explained": wording.explained(finding),
    }


def _subjects(kind: str, finding: Finding) -> dict[str, Any]:
    names = [clean(name) for name in getattr(finding, kind)]
    return {"label": wording.counted(kind, names), "first": names[:NAMES], "rest": names[NAMES:]}
