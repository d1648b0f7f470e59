"""Baselines: what is known is neither shown nor counted, what is new is, what is gone is told."""

import json
from dataclasses import replace

import pytest

from ddplint.baseline import compare
from ddplint.errors import ReportError
from ddplint.report import FAIL, PASS, Finding, ItemVerdict, Report, ScenarioResult
from ddplint.spec import ReportOptions

HEAD = Finding("unused-parameter", "error", "no gradient", parameters=["head.weight", "head.bias"], scenarios=["a", "b"],
               explains={"unused-output": 1})
SCALE = Finding("zero-gradient", "warning", "all zero", parameters=["scale"], scenarios=["a"])
KEPT = Finding("unused-parameter", "error", "no gradient", parameters=["old.weight"], scenarios=["a"], accepted="kept")


@pytest.fixture
def lint(tmp_path):
    def judged(*findings, update=False, file="known.json", scenarios=("a", "b"), status=None):
        failing = any(finding.severity == "error" and finding.accepted is None for finding in findings)
        items = [ItemVerdict("outputs", "Outputs", FAIL if failing else PASS, 1, rules=["unused-output"])]
        report = Report(int(failing) if status is None else status, {}, items, [replace(finding) for finding in findings],
                        [ScenarioResult(name, "ok") for name in scenarios])
        compare(report, ReportOptions(baseline=str(tmp_path / file), update_baseline=update))
        return report
    return judged


def test_what_is_known_is_neither_shown_nor_counted(lint):
    lint(HEAD, SCALE, update=True)
    report = lint(HEAD, SCALE, KEPT)
    assert report.exit_status == 0
    assert [finding.accepted for finding in report.findings] == ["kept"]
    assert (report.items[0].verdict, report.items[0].because) == (PASS, "but for what the baseline knows")
    assert repr(report) == "<Report PASS: no new findings, 1 accepted, 2 known in 2 scenarios>"
    assert report.notes[0].startswith("2 known findings are in the baseline ")


def test_updating_compares_with_what_was_just_written(lint):
    report = lint(HEAD, update=True)
    assert report.exit_status == 0 and report.findings == []


@pytest.mark.parametrize("new", [
    replace(HEAD, parameters=["head.weight", "head.bias", "tail.weight"]),
    replace(HEAD, scenarios=["a", "b", "c"]),
    replace(HEAD, rule="rank-divergent-usage"),
])
def test_a_finding_with_anything_new_is_shown_whole(lint, new):
    lint(HEAD, update=True)
    report = lint(new)
    assert report.findings == [new]
    assert report.exit_status == 1 and report.items[0].verdict == FAIL


def test_moved_lines_and_other_words_are_not_new(lint):
    lint(HEAD, update=True)
    assert lint(replace(HEAD, message="said otherwise", steps=[2], ranks=[1], fingerprint="x")).findings == []


def test_what_no_longer_occurs_is_told(lint):
    lint(HEAD, SCALE, update=True)
    report = lint(SCALE)
    assert report.resolved == ["unused-parameter in a: head.bias, head.weight", "unused-parameter in b: head.bias, head.weight"]


def test_a_scenario_that_was_not_run_is_not_resolved(lint, tmp_path):
    lint(HEAD, update=True)
    assert lint(scenarios=["a"]).resolved == ["unused-parameter in a: head.bias, head.weight"]
    lint(update=True, scenarios=["a"])
    kept = json.loads((tmp_path / "known.json").read_text())["findings"]
    assert {entry["scenario"] for entry in kept} == {"b"}


def test_accepted_findings_do_not_enter_the_baseline(lint, tmp_path):
    lint(KEPT, update=True)
    assert json.loads((tmp_path / "known.json").read_text())["findings"] == []


def test_the_file_is_sorted_one_entry_a_line(lint, tmp_path):
    lint(SCALE, HEAD, update=True)
    lines = (tmp_path / "known.json").read_text().splitlines()
    assert lines[1] == '{"rule": "unused-parameter", "scenario": "a", "subject": "parameter:head.bias"},'
    assert lines[1:-1] == sorted(lines[1:-1]) and len(lines) == 2 + 5


def test_a_run_that_could_not_judge_stays_so_and_writes_nothing(lint, tmp_path):
    lint(HEAD, update=True)
    before = (tmp_path / "known.json").read_text()
    assert lint(HEAD, SCALE, update=True, status=2).exit_status == 2
    assert (tmp_path / "known.json").read_text() == before


def test_mistakes(lint, tmp_path):
    with pytest.raises(ReportError, match=r"known.json does not exist; report.update_baseline=true writes it"):
        lint(HEAD)
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ReportError, match=r"bad.json is no baseline of ddplint; delete it and write it again with"):
        lint(HEAD, file="bad.json")
    with pytest.raises(ReportError, match="cannot be read"):
        lint(HEAD, file=".")
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match="cannot be read|cannot be written"):
        lint(HEAD, update=True, file="file/b.json")
    with pytest.raises(ReportError, match="report.update_baseline needs report.baseline=FILE"):
        compare(Report(0), ReportOptions(update_baseline=True))
