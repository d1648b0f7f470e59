"""The report for people: on a terminal of any width, with and without colour, and as lines in a pipe."""

import io
import re

import pytest
from rich.cells import cell_len

from ddplint.render import plain, render, show, terminal
from ddplint.report import ItemVerdict
from ddplint.spec import ReportOptions

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Stream(io.StringIO):
    """What stdout looks like: a terminal or not, in some encoding."""

    def __init__(self, tty=False, encoding="utf-8"):
        super().__init__()
        self.tty, self._encoding = tty, encoding

    def isatty(self):
        return self.tty

    @property
    def encoding(self):
        return self._encoding

    def write(self, text):
        text.encode(self._encoding)              # raises where the encoding lacks a character, as a real stream does
        return super().write(text)


def shown(report, *, tty, encoding="utf-8", **environ):
    stream = Stream(tty, encoding)
    show(report, ReportOptions(), stdout=stream, stderr=Stream(), environ={"TERM": "xterm", **environ})
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", ["healthy", "failing"])
def test_terminal_snapshot(name, width, reports, snapshot):
    assert terminal.render(getattr(reports, name)(), width=width) == snapshot


def test_verbose_snapshot(reports, snapshot):
    assert terminal.render(reports.failing(), verbose=True) == snapshot


@pytest.mark.parametrize("name", ["healthy", "failing"])
def test_pipe_snapshot(name, reports, snapshot):
    assert plain.render(getattr(reports, name)()) == snapshot


@pytest.mark.parametrize("layout", ["terminal", "plain"])
def test_the_five_questions_are_answered(layout, reports):
    text = " ".join(render(reports.failing(), layout).split())
    for answer in ("seg_head: no gradient on any of 2 ranks",                    # what
                   "the output seg feeds no loss term",                          # why
                   "my_pkg/models.py:41",                                        # where
                   "scenarios typical, bright; ranks 0, 1; steps 0-2",
                   "typical: error on rank 1 at step 1: Expected to have finished reduction",   # will DDP fail
                   "add a term that reads the output seg, or freeze seg_head",   # what to do
                   "find_unused_parameters=true (now false)",
                   "exit status 1: findings of severity error or worse"):
        assert answer in text


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("name", ["healthy", "failing", "large", "hostile"])
def test_no_line_is_wider_than_the_terminal(name, width, reports):
    text = terminal.render(getattr(reports, name)(), width=width)
    assert max(cell_len(line) for line in text.split("\n")) <= width


def test_a_healthy_run_is_a_few_lines(reports):
    assert len(terminal.render(reports.healthy()).splitlines()) <= 8
    assert len(plain.render(reports.healthy()).splitlines()) <= 6


def test_what_fails_takes_one_line_of_the_checklist(reports):
    report = reports.failing()
    report.items[0].because = "unused-parameter: " + ", ".join(f"layer{i}.weight" for i in range(30))
    checklist = [line for line in terminal.render(report).splitlines() if line.startswith(("  FAIL ", "  NOT CHECKED"))]
    assert checklist[0].startswith("  FAIL        Every forward output is used: unused-parameter: layer0.weight")
    assert checklist[0].endswith("…") and checklist[1].startswith("  NOT CHECKED Every branch")


def test_what_the_model_has_nothing_of_shares_a_line(reports):
    report = reports.healthy()
    report.items += [ItemVerdict(f"i{n}", f"Item {n}", "not checked", because=f"no {what}", absent=True)
                     for n, what in enumerate(["clip", "BatchNorm", "clip"])]
    for text in (terminal.render(report), plain.render(report)):
        assert "3 items with nothing to check: no clip; no BatchNorm\n" in text and "Item 1" not in text
        assert "Every branch is taken: no branch was traced" in text
    assert "Item 1: no BatchNorm" in terminal.render(report, verbose=True)


def test_verbose_lists_every_name(reports):
    report = reports.large(40, 3)
    report.findings[0].parameters = list(report.usage)
    for text in (terminal.render(report, verbose=True), plain.render(report, verbose=True)):
        assert all(name in text for name in report.usage)
    assert "stage9.block3.weight" not in terminal.render(report)


@pytest.mark.parametrize("layout", ["terminal", "plain"])
def test_many_rows_are_cut_and_counted(layout, reports):
    report = reports.large(70, 3)
    rows = sum(any(share != 1 for shares in cells.values() for share in shares) for cells in report.usage.values())
    assert f"{rows - 16} more rows (report.verbose=true)" in render(report, layout)


def test_colour_says_nothing_that_words_do_not(reports):
    coloured = terminal.render(reports.failing(), colour=True)
    bare = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).split("\n"))
    assert ANSI.search(coloured)
    assert bare == terminal.render(reports.failing())


@pytest.mark.parametrize(("environ", "tty", "coloured"), [
    pytest.param({}, True, True, id="terminal"),
    pytest.param({"NO_COLOR": "1"}, True, False, id="NO_COLOR"),
    pytest.param({"TERM": "dumb"}, True, False, id="dumb"),
    pytest.param({}, False, False, id="pipe"),
    pytest.param({"FORCE_COLOR": "1"}, False, False, id="FORCE_COLOR in a pipe: lines stay greppable"),
    pytest.param({"CI": "true", "GITHUB_ACTIONS": "false"}, False, False, id="CI log"),
])
def test_colours(environ, tty, coloured, reports):
    text = shown(reports.failing(), tty=tty, **environ)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", text)) == coloured
    assert "error [unused-parameter]" in ANSI.sub("", text)


def test_the_width_of_the_terminal_is_used(reports):
    text = shown(reports.failing(), tty=True, COLUMNS="50", NO_COLOR="1")
    assert 40 < max(len(line) for line in ANSI.sub("", text).split("\n")) <= 50


def test_lines_in_a_pipe_are_not_wrapped(reports):
    lines = shown(reports.failing(), tty=False, COLUMNS="40").splitlines()
    grep = [line for line in lines if re.match(r"\S+:\d+: (error|warning|note|accepted) \[[a-z-]+\] \S", line)]
    assert [line.split(": ")[1] for line in grep] == [
        "error [unused-parameter] seg_head", "error [rank-divergent-usage] experts.1", "warning [zero-gradient] scale",
        "accepted [unused-parameter] old_head"]


@pytest.mark.parametrize("tty", [True, False])
def test_a_poor_encoding_loses_nothing_but_looks(tty, reports):
    text = shown(reports.hostile(), tty=tty, encoding="ascii")
    assert "\\U0001f642.weight" in text and "\\u05e9" in text


def test_markup_and_emoji_codes_stay_as_they_are(reports):
    report = reports.failing()
    report.findings[0].message = "[bold]x[/bold] :smile: blocks[0]"
    assert "[bold]x[/bold] :smile: blocks[0]" in terminal.render(report, colour=True, width=200)


def test_could_not_judge(reports):
    report = reports.healthy()
    report.exit_status, report.broken = 2, {"my-rule": "KeyError: 'x'"}
    for text in (terminal.render(report), plain.render(report)):
        assert text.startswith("NOT JUDGED")
        assert "rule my-rule broke (KeyError: 'x')" in text
        assert "exit status 2: could not judge" in text


def test_predicted_outcomes_say_so(reports):
    report = reports.healthy()
    report.spec["engine"] = "simulate"
    assert "DDP ran all 2 scenarios (predicted by simulation)" in plain.render(report)


def test_repr_is_the_verdict(reports):
    assert repr(reports.failing()) == "<Report FAIL: 2 errors, 1 warning, 1 accepted in 2 scenarios>"
    assert repr(reports.healthy()) == "<Report PASS: no findings in 2 scenarios>"
