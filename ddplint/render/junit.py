"""JUnit XML: a suite per scenario, a case per checklist item, so that passes count too."""

from xml.etree import ElementTree as ET

from ddplint.render import findings, wording
from ddplint.render.text import clean
from ddplint.report import BROKEN, FAIL, NOT_CHECKED, Finding, ItemVerdict, Report, ScenarioResult

WHOLE = "whole run"
"""The suite of what belongs to no single scenario."""


def render(report: Report) -> str:
    root = ET.Element("testsuites", name=f"ddplint {wording.model_name(report)}")
    for scenario in report.scenarios:
        shown = [finding for finding in report.findings if scenario.name in finding.scenarios]
        _suite(root, report, clean(scenario.name), report.items, shown, scenario)
    names = {scenario.name for scenario in report.scenarios}
    rest = [finding for finding in report.findings if not names & set(finding.scenarios)]
    orphans = [item for item in report.items if item.verdict == FAIL and not _against(item, report, report.findings)]
    if rest or orphans or not report.scenarios:
        _suite(root, report, WHOLE, orphans if report.scenarios else report.items, rest, None)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key)) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _home(finding: Finding, report: Report) -> str:
    """The case that shows a finding: the first failed item that its rule backs, else the rule."""
    backed = [item for item in report.items if finding.rule in item.rules]
    failed = [item for item in backed if item.verdict == FAIL] or backed
    return failed[0].id if failed else finding.rule


def _against(item: ItemVerdict, report: Report, shown: list[Finding]) -> list[Finding]:
    """The findings that make an item fail: shown in its own case, or telling a problem of its rules elsewhere."""
    return [finding for finding in shown if _home(finding, report) == item.id
            or {finding.rule, *finding.explains} & set(item.rules)]


def _suite(root: ET.Element, report: Report, name: str, items: list[ItemVerdict], shown: list[Finding],
           scenario: ScenarioResult | None) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    if scenario is not None:
        properties = ET.SubElement(suite, "properties")
        ET.SubElement(properties, "property", name="ddp", value=wording.ddp_line(scenario))
    for item in items:
        case = _case(suite, report, clean(item.title or item.id))
        own = [finding for finding in shown if _home(finding, report) == item.id]
        _tell(case, report, own)
        _tell_item(case, item, report, own, shown, whole=scenario is None)
    known = {item.id for item in items}
    for home in dict.fromkeys(_home(finding, report) for finding in shown):
        if home not in known:
            own = [finding for finding in shown if _home(finding, report) == home]
            _tell(_case(suite, report, clean(home)), report, own)
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(sum(case.find(tag) is not None for case in suite.iter("testcase"))))
    suite.set("tests", str(len(suite.findall("testcase"))))


def _case(suite: ET.Element, report: Report, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"ddplint.{wording.model_name(report)}", name=name)


def _tell(case: ET.Element, report: Report, shown: list[Finding]) -> None:
    """Findings that count at ``fail_on`` fail the case, the others stand beside it."""
    for finding in shown:
        if findings.fails(finding, report):
            told = ET.SubElement(case, "failure", type=clean(finding.rule), message=wording.headline(finding))
            told.text = _text(finding, report)
    beside = [_text(finding, report) for finding in shown if not findings.fails(finding, report)]
    if beside:
        ET.SubElement(case, "system-out").text = "\n".join(beside)


def _tell_item(case: ET.Element, item: ItemVerdict, report: Report, own: list[Finding], shown: list[Finding], *,
               whole: bool) -> None:
    """What an item's verdict says beyond the findings in its case."""
    if item.verdict == BROKEN:
        ET.SubElement(case, "error", type="broken", message=wording.item_line(item))
    elif item.verdict == NOT_CHECKED and not own:
        ET.SubElement(case, "skipped", message=wording.item_line(item))
    elif item.verdict == FAIL and case.find("failure") is None:
        against = [finding for finding in _against(item, report, shown) if findings.fails(finding, report)]
        if whole or against:
            ET.SubElement(case, "failure", type=clean(item.id), message=wording.item_line(item))


def _text(finding: Finding, report: Report) -> str:
    spot = wording.spot(findings.place(finding, report))
    told = f"{wording.severity_of(finding)} [{clean(finding.rule)}] {wording.one_line(finding)}"
    lines = [f"{spot}: {told}" if spot else told]
    lines += [f"{label}: {names}" for label, names in wording.subject_lists(finding, None)]
    lines += [clean(finding.accepted)] if finding.accepted else [clean(finding.remedy)] if finding.remedy else []
    return "\n".join(lines)
