"""What is told on stderr while a lint runs."""

import io
import itertools

import pytest

from ddplint.progress import Progress, printable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: io.StringIO) -> str:
    with Progress(stream, clock=itertools.count().__next__) as progress:
        progress.scenario("typical", 0, 2)
        progress.phase(1, None, "build")
        progress.phase(0, 2, "backward")
        progress.done("typical", "ok")
    return stream.getvalue()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for variable in ("CI", "TTY_INTERACTIVE", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "120")


def test_a_pipe_hears_nothing():
    assert run(io.StringIO()) == ""


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_ci_log_gets_one_line_per_scenario_and_one_at_the_start(monkeypatch, stream):
    monkeypatch.setenv("CI", "true")
    assert run(stream()) == "ddplint: [1/2] typical  the ranks are being started\nddplint: [1/2] typical: ok\n"


def test_an_interruption_says_what_was_being_done():
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(stream) as progress:
        progress.scenario("typical", 0, 2)
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), Progress(stream) as progress:
        progress.scenario("typical", 0, 2)
        progress.phase(1, None, "build")
        raise KeyboardInterrupt
    assert stream.getvalue() == ("ddplint: interrupted at [1/2] typical  the ranks are being started\n"
                                 "ddplint: interrupted at [1/2] typical  rank 1: build\n")


def test_a_terminal_gets_one_line_that_is_wiped_at_the_end():
    said = run(Terminal())
    assert "\n" not in said
    assert said.split("\r\x1b[2K")[1:] == [
        "[1/2] typical  the ranks are being started", "[1/2] typical  rank 1: build", "[1/2] typical  rank 0: step 2 backward  rank 1: build", ""]


def test_phases_are_drawn_only_now_and_then():
    stream = Terminal()
    progress = Progress(stream, clock=lambda: 7.0)
    progress.scenario("typical", 0, 1)
    progress.phase(0, 0, "forward")
    assert stream.getvalue() == "\r\x1b[2K[1/1] typical  the ranks are being started"


def test_a_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    assert max(map(len, run(Terminal()).split("\r\x1b[2K"))) == 19


@pytest.mark.parametrize(("name", "value"), [("TTY_INTERACTIVE", "0"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_live_line(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert run(Terminal()) == ""


def test_control_characters_are_spelt_out():
    assert printable("a\x1b[31m\n\u202eb") == "a\\x1b[31m\\n\\u202eb"
