"""Reports to files and streams: nothing mixes, nothing is lost, what cannot be written is told."""

import io
import json
from pathlib import Path

import pytest

from ddplint.errors import ReportError
from ddplint.render import FORMATS, check_files, show
from ddplint.spec import ReportOptions


@pytest.fixture
def streams():
    return {"stdout": io.StringIO(), "stderr": io.StringIO(), "environ": {}}


def texts(streams):
    return streams["stdout"].getvalue(), streams["stderr"].getvalue()


def test_every_format_in_one_run(tmp_path, reports, streams):
    files = {name: str(tmp_path / "out" / f"report.{name}") for name in FORMATS}
    show(reports.failing(), ReportOptions(files=files), **streams)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(f"report.{name}" for name in FORMATS)
    assert all(Path(path).read_text(encoding="utf-8").endswith("\n") for path in files.values())
    out, err = texts(streams)
    assert out.splitlines()[-1] == "exit status 1: findings of severity error or worse" and err == ""


def test_a_format_on_stdout_has_it_to_itself(reports, streams):
    show(reports.failing(), ReportOptions(files={"json": "-"}), **streams)
    out, err = texts(streams)
    assert json.loads(out)["exit_status"] == 1
    assert "FAIL my_pkg.models.MultiTaskNet" in err


def test_the_terminal_report_can_be_off(reports, streams):
    show(reports.failing(), ReportOptions(terminal=False), **streams)
    assert texts(streams) == ("", "")


def test_github_is_on_by_itself_in_its_actions(reports, streams):
    streams["environ"] = {"GITHUB_ACTIONS": "true"}
    show(reports.failing(), ReportOptions(), **streams)
    out, err = texts(streams)
    assert "FAIL my_pkg" in out and out.count("\n::error ") == 2 and err == ""


def test_annotations_leave_stdout_to_another_format(reports, streams):
    streams["environ"] = {"GITHUB_ACTIONS": "true"}
    show(reports.failing(), ReportOptions(files={"sarif": "-"}), **streams)
    out, err = texts(streams)
    assert json.loads(out)["version"] == "2.1.0" and "\n::error " in err


def test_what_cannot_be_written_is_told_after_the_rest(tmp_path, reports, streams):
    (tmp_path / "file").write_text("x")
    files = {"html": str(tmp_path / "file" / "r.html"), "json": str(tmp_path), "junit": str(tmp_path / "r.xml"),
             "sarif": "bad\0name"}
    with pytest.raises(ReportError) as caught:
        show(reports.failing(), ReportOptions(files=files), **streams)
    told = str(caught.value)
    assert f"report.html: cannot write {tmp_path}/file/r.html: " in told
    assert f"report.json: cannot write {tmp_path}: it is a folder" in told
    assert "report.sarif: cannot write bad" in told
    assert (tmp_path / "r.xml").exists() and "FAIL my_pkg" in texts(streams)[0]


def test_two_formats_need_two_files(tmp_path, reports, streams, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ReportOptions(files={"json": "same", "html": str(tmp_path / "same")})
    with pytest.raises(ReportError, match=f"report.json and report.html both name {tmp_path}/same: give each its own file"):
        check_files(options)
    with pytest.raises(ReportError, match="both name"):
        show(reports.healthy(), options, **streams)
    assert "PASS my_pkg" in texts(streams)[0]
    with pytest.raises(ReportError, match="report.json and report.sarif both name -"):
        check_files(ReportOptions(files={"json": "-", "sarif": "-"}))


def test_a_broken_format_does_not_cost_the_others(tmp_path, reports, streams, monkeypatch):
    monkeypatch.setattr("ddplint.render.html.render", lambda report: 1 / 0)
    files = {"html": str(tmp_path / "r.html"), "json": str(tmp_path / "r.json")}
    with pytest.raises(ReportError, match=r"report.html: could not be made \(ZeroDivisionError: division by zero\)"):
        show(reports.failing(), ReportOptions(files=files), **streams)
    assert (tmp_path / "r.json").exists()


def test_an_unknown_format_is_told_after_the_rest(tmp_path, reports, streams):
    with pytest.raises(ReportError, match=r"no report format is called 'yaml'; expected one of json, sarif"):
        show(reports.failing(), ReportOptions(files={"yaml": str(tmp_path / "r")}), **streams)
    assert "FAIL my_pkg" in texts(streams)[0]


class Left(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text):
        raise BrokenPipeError


def test_a_reader_that_has_left_costs_no_file(tmp_path, reports):
    with pytest.raises(BrokenPipeError):
        show(reports.failing(), ReportOptions(files={"json": str(tmp_path / "r.json")}), stdout=Left(), environ={})
    assert (tmp_path / "r.json").exists()
