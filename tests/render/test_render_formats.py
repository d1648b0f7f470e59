"""Every format: valid for its reader, harmless whatever the names are, and about the same findings."""

import dataclasses
import html
import json
import re
import unicodedata

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml

from ddplint.errors import ReportError
from ddplint.evidence import Cause, Place
from ddplint.render import FORMATS, render
from ddplint.render.text import clean
from ddplint.report import Finding, Report, ScenarioResult

EVERY = [*FORMATS, "terminal", "plain"]


# JSON

def test_json_snapshot(reports, snapshot):
    assert render(reports.failing(), "json") == snapshot


def test_json_is_the_documented_interface(reports):
    body = json.loads(render(reports.failing(), "json"))
    assert body["schema_version"] == 1
    assert body["tool"] == {"name": "ddplint", "version": "0.1.0"}
    assert body["items"][0] == {"id": "outputs-used", "title": "Every forward output is used", "verdict": "fail",
                                "examined": 6, "because": "seg feeds no loss term", "rules": ["unused-output"], "absent": False}
    finding = body["findings"][0]
    assert finding["cause"]["kind"] == "output-not-in-loss"
    assert (finding["cause"]["file"], finding["cause"]["line"]) == ("my_pkg/models.py", 41)
    assert body["findings"][-1]["accepted"] == "kept so that old checkpoints load"
    assert body["scenarios"][0]["ddp"]["outcome"] == "error"
    assert body["settings"]["find_unused_parameters"]["value"] is True
    assert body["usage"]["seg_head.conv.bias"] == {"typical": [0.0, 0.0], "bright": [0.0, 0.0]}


def test_json_has_no_nan(reports):
    report = reports.failing()
    report.usage["scale"] = {"typical": [float("nan"), float("inf")]}
    report.settings["find_unused_parameters"].value = float("-inf")
    body = json.loads(render(report, "json"), parse_constant=lambda name: pytest.fail(name))
    assert body["usage"]["scale"]["typical"] == [None, None]
    assert body["settings"]["find_unused_parameters"]["value"] is None


@pytest.mark.parametrize("format", EVERY)
def test_equal_reports_give_equal_text(format, reports):
    assert render(reports.failing(), format) == render(reports.failing(), format)


# SARIF

@pytest.fixture(scope="module")
def sarif_schema(here):
    return json.loads((here / "data" / "sarif-2.1.0-rtm.5.json").read_text())


@pytest.mark.parametrize("name", ["healthy", "failing", "large", "hostile"])
def test_sarif_is_valid(name, reports, sarif_schema):
    body = json.loads(render(getattr(reports, name)(), "sarif"))
    checker = jsonschema.Draft4Validator(sarif_schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in checker.iter_errors(body)] == []


def test_sarif_points_at_the_line_of_the_cause(reports):
    run = json.loads(render(reports.failing(), "sarif"))["runs"][0]
    first = run["results"][0]
    location = first["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "my_pkg/models.py"
    assert location["region"] == {"startLine": 41, "snippet": {"text": 'return {"cls": cls, "seg": seg}'}}
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "unused-parameter"
    assert first["partialFingerprints"]["primaryLocationLineHash"] == "a1:1"
    assert "add a term that reads the output seg" in first["message"]["text"]
    assert run["results"][2]["locations"][0]["physicalLocation"]["region"]["startLine"] == 12     # the model's class


def test_sarif_suppresses_what_is_accepted(reports):
    results = json.loads(render(reports.failing(), "sarif"))["runs"][0]["results"]
    assert ["suppressions" in result for result in results] == [False, False, False, True]
    assert results[3]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "kept so that old checkpoints load"}]


def test_sarif_tells_a_broken_rule(reports):
    report = reports.failing()
    report.exit_status = 2
    invocation = json.loads(render(report, "sarif"))["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "rule house-rule broke (KeyError: 'x')"


def test_sarif_paths():
    from ddplint.render.sarif import uri
    assert uri("my pkg/a b.py") == "my%20pkg/a%20b.py"
    assert uri("/home/me/a.py") == "file:///home/me/a.py"


def test_sarif_carries_the_manual(reports):
    rule = json.loads(render(reports.failing(), "sarif"))["runs"][0]["tool"]["driver"]["rules"][0]
    assert rule["shortDescription"]["text"] == "A trainable parameter gets no gradient on any rank."
    assert "Why it matters" in rule["help"]["text"] and "### Why it matters" in rule["help"]["markdown"]


# JUnit

def test_junit_is_read_back(reports):
    read = JUnitXml.fromstring(render(reports.failing(), "junit").encode())
    suites = {suite.name: suite for suite in read}
    assert list(suites) == ["typical", "bright"]
    assert (read.tests, read.failures, read.errors, read.skipped) == (12, 5, 2, 2)
    cases = {case.name: case for case in suites["typical"]}
    assert cases["Every task's loss arrives"].is_passed
    assert cases["Every branch is taken"].is_skipped
    assert cases["Every forward output is used"].result[0].message == "Every forward output is used: seg feeds no loss term"
    assert cases["unused-parameter"].result[0].message == "seg_head: no gradient on any of 2 ranks"
    assert "my_pkg/models.py:41" in cases["unused-parameter"].result[0].text


def test_junit_puts_a_finding_into_the_item_that_it_fails(reports):
    report = reports.failing()
    report.items[0].rules.append("unused-parameter")
    cases = {case.name: case for suite in JUnitXml.fromstring(render(report, "junit").encode()) for case in suite}
    assert "unused-parameter" not in cases
    assert cases["Every forward output is used"].result[0].type == "unused-parameter"


def test_junit_fails_no_case_for_what_passes_the_lint(reports):
    cases = {case.name: case for suite in JUnitXml.fromstring(render(reports.failing(), "junit").encode()) for case in suite}
    assert cases["zero-gradient"].is_passed
    assert "warning [zero-gradient]" in cases["zero-gradient"].system_out


def test_junit_of_a_healthy_run_has_passes(reports):
    read = JUnitXml.fromstring(render(reports.healthy(), "junit").encode())
    assert (read.tests, read.failures, read.errors, read.skipped) == (6, 0, 0, 2)


def test_junit_shows_what_belongs_to_no_scenario(reports):
    report = reports.failing()
    report.findings[0].scenarios = []
    suites = {suite.name: [case.name for case in suite] for suite in JUnitXml.fromstring(render(report, "junit").encode())}
    assert suites["whole run"] == ["unused-parameter"]


# GitHub, GitLab, Markdown

def test_github_annotations(reports):
    lines = render(reports.failing(), "github").splitlines()
    assert lines[0].startswith("::error file=my_pkg/models.py,line=41,title=ddplint%3A unused-parameter::seg_head: no ")
    assert lines[0].endswith("%0Aadd a term that reads the output seg, or freeze seg_head")
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]


def test_github_shows_the_worst_within_the_cap(reports):
    report = reports.failing()
    report.findings = [dataclasses.replace(report.findings[2], severity=severity, message=f"{severity} {i}")
                       for i in range(12) for severity in ("note", "warning", "error")]
    lines = render(report, "github").splitlines()
    kinds = [line.split(" ")[0] for line in lines]
    assert (kinds.count("::error"), kinds.count("::warning"), kinds.count("::notice")) == (10, 10, 10)
    assert kinds[0] == "::error" and lines[-1] == "::notice title=ddplint::7 more findings are in the report"


def test_gitlab_entries(reports):
    entries = json.loads(render(reports.failing(), "gitlab"))
    assert [entry["severity"] for entry in entries] == ["critical", "critical", "minor"]
    assert entries[0]["location"] == {"path": "my_pkg/models.py", "lines": {"begin": 41}}


def test_gitlab_fingerprints_are_unique(reports):
    report = reports.failing()
    report.findings = [report.findings[0]] * 3 + [dataclasses.replace(report.findings[1], fingerprint="")]
    marks = [entry["fingerprint"] for entry in json.loads(render(report, "gitlab"))]
    assert marks[:3] == ["a1", "a1-2", "a1-3"] and len(set(marks)) == 4


def test_markdown_snapshot(reports, snapshot):
    assert render(reports.failing(), "markdown") == snapshot


def test_markdown_is_inert():
    from ddplint.render.markdown import code, text
    assert text("a_b *c* [d](e) <b> @team #1 | x") == r"a\_b \*c\* \[d\](e) &lt;b> @\u200bteam \#1 \| x".replace(r"\u200b", "\u200b")
    assert code("a`b``c|d") == r"```a`b``c\|d```"


# All formats

@pytest.mark.parametrize("format", EVERY)
def test_hostile_names_are_harmless(format, reports):
    text = render(reports.hostile(), format)
    acting = {char for char in text if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char != "\n"}
    assert acting == set()
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    if format in ("html", "junit", "markdown"):
        assert "<script" not in re.sub("`[^`\n]*`", "", text).lower()           # a code span of Markdown is inert
    if format in ("terminal", "plain"):
        assert max(map(len, re.split(r"\s", text))) < 400           # 10,000 characters are shortened here alone


def test_a_name_of_ten_thousand_characters_is_whole_elsewhere(reports):
    long = next(name for name in reports.HOSTILE if len(name) == 10_000)
    for format in ("json", "sarif", "junit", "markdown", "html", "gitlab", "github"):
        assert long in render(reports.hostile(), format)


def test_github_commands_cannot_be_injected(reports):
    for line in render(reports.hostile(), "github").splitlines():
        assert re.match(r"::(error|warning|notice) ", line)
        assert line.count("::error") + line.count("::notice") <= 1 + line.count("%0A::error::x")


def test_an_unknown_format_gets_the_nearest(reports):
    with pytest.raises(ReportError, match=r"no report format is called 'sariff'; did you mean report.sarif\?"):
        render(reports.healthy(), "sariff")


NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs", "Cc")), min_size=1, max_size=20)
PLAIN = st.from_regex(r"[a-z]{1,8}(\.[a-z0-9]{1,5}){0,3}", fullmatch=True)


@st.composite
def generated(draw):
    """A report with distinct findings; at most nine of a severity, so that no format has to leave one out."""
    findings = []
    for i in range(draw(st.integers(0, 9))):
        place = draw(st.none() | st.builds(Place, PLAIN, st.integers(1, 999)))
        cause = draw(st.none() | st.builds(Cause, PLAIN, NAMES, st.just(place)))
        findings.append(Finding(
            rule=draw(st.sampled_from(["unused-parameter", "zero-gradient", "own-rule"])),
            severity=draw(st.sampled_from(["error", "warning", "note"])), message=f"marker{i}x", remedy=draw(NAMES),
            group=draw(st.just("") | PLAIN), parameters=draw(st.lists(PLAIN | NAMES, max_size=3)),
            scenarios=draw(st.lists(st.sampled_from(["a", "b"]), unique=True)), cause=cause,
            accepted=draw(st.none() | st.just("because it is known"))))
    return Report(1, {"model": "m"}, findings=findings, scenarios=[ScenarioResult("a", "ok"), ScenarioResult("b", "hang")])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(generated())
def test_every_format_shows_the_same_findings(report):
    counted = {finding.message for finding in report.findings if finding.accepted is None}
    everything = {finding.message for finding in report.findings}
    for format in EVERY:
        text = html.unescape(render(report, format))
        told = set(re.findall(r"marker\dx", text))
        assert told == (counted if format in ("github", "gitlab") else everything), format
        for finding in report.findings:
            if finding.message in told and format not in ("github", "junit", "html", "markdown"):
                assert finding.rule in text


@given(st.text())
def test_clean_is_one_printable_line_and_stays_the_same(text):
    cleaned = clean(text)
    assert "\n" not in cleaned and clean(cleaned) == cleaned
    cleaned.encode()
