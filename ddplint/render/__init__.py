"""Report -> text. One file per format; the sentences that they share stand in ``wording``."""

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import TextIO

from ddplint.errors import ReportError
from ddplint.files import write_whole
from ddplint.report import Report
from ddplint.spec import ReportOptions

FORMATS = {
    "json": "ddplint.render.json_",
    "sarif": "ddplint.render.sarif",
    "junit": "ddplint.render.junit",
    "github": "ddplint.render.github",
    "gitlab": "ddplint.render.gitlab",
    "markdown": "ddplint.render.markdown",
    "html": "ddplint.render.html",
}
"""Format name -> the module whose ``render(report)`` makes it; loaded when it is asked for."""

STDOUT = "-"
LOG_FORMATS = {"github"}
"""Formats made of lines that stand in a log among others: on stdout they do not push the terminal report aside."""


def render(report: Report, format: str, *, verbose: bool = False) -> str:
    """The report in one format: a key of ``FORMATS``, ``terminal`` (80 columns, no colour) or ``plain``.

    Raises ReportError for a format that does not exist.
    """
    if format in ("terminal", "plain"):
        return importlib.import_module(f"ddplint.render.{format}").render(report, verbose=verbose)
    if format not in FORMATS:
        nearest = difflib.get_close_matches(format, FORMATS, 1)
        hint = f"did you mean report.{nearest[0]}?" if nearest else f"expected one of {', '.join(FORMATS)}"
        raise ReportError(f"no report format is called {format!r}; {hint}")
    return importlib.import_module(FORMATS[format]).render(report)


def check_files(options: ReportOptions) -> None:
    """Raises ReportError where two formats would go to one file, so that it can be told before a long run."""
    taken: dict[str, str] = {}
    for name, path in _targets(options).items():
        place = path if path == STDOUT else str(Path(path).absolute())
        if place in taken and not {name, taken[place]} & LOG_FORMATS:
            raise ReportError(f"report.{taken[place]} and report.{name} both name {path}: give each its own file")
        taken[place] = name


def show(report: Report, options: ReportOptions, *, stdout: TextIO | None = None, stderr: TextIO | None = None,
         environ: dict[str, str] | None = None) -> None:
    """Print the terminal report and write each format in ``options.files``.

    A format that goes to stdout has it to itself: the terminal report then goes to stderr. Raises ReportError, with
    the path of each file that could not be written, after everything else has been shown and written.
    """
    stdout, stderr = stdout or sys.stdout, stderr or sys.stderr
    environ = dict(os.environ) if environ is None else environ
    targets = _targets(options)
    if environ.get("GITHUB_ACTIONS") == "true":
        targets.setdefault("github", STDOUT)
    exclusive = any(path == STDOUT for name, path in targets.items() if name not in LOG_FORMATS)
    log = stderr if exclusive else stdout
    spoken = [(log, _terminal(report, options.verbose, log, environ))] if options.terminal else []
    failures = []
    for name, path in targets.items():
        try:
            text = _made(report, name)
            if path == STDOUT:
                spoken.append((log if name in LOG_FORMATS else stdout, text))
            else:
                _write_file(name, path, text)
        except ReportError as error:
            failures.append(str(error))
    try:                                     # streams last: a reader that has left (| head) costs no file
        for stream, text in spoken:
            _write_stream(stream, text)
        check_files(options)
    except ReportError as error:
        failures.append(str(error))
    finally:
        if failures:
            raise ReportError("; ".join(failures))


def _targets(options: ReportOptions) -> dict[str, str]:
    return {name: str(path) for name, path in options.files.items() if path}


def _terminal(report: Report, verbose: bool, stream: TextIO, environ: dict[str, str]) -> str:
    """The layout for people where ``stream`` is a terminal, plain lines elsewhere; colours as rich decides."""
    from rich.console import Console

    from ddplint.render import plain, terminal

    if not stream.isatty():
        return plain.render(report, verbose=verbose)
    console = Console(file=stream, markup=False, highlight=False, emoji=False, _environ=environ)
    return terminal.render_on(console, report, verbose=verbose)


def _made(report: Report, name: str) -> str:
    """The text of one format; whatever goes wrong is a ReportError, for one format must not cost the user the others."""
    try:
        return render(report, name)
    except ReportError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ReportError(f"report.{name}: could not be made ({reason}); this is a fault of ddplint") from error


def _write_file(name: str, path: str, text: str) -> None:
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, newline="\n")
    except (OSError, ValueError) as error:
        reason = "it is a folder" if Path(path).is_dir() else getattr(error, "strerror", None) or str(error)
        raise ReportError(f"report.{name}: cannot write {path}: {reason}") from error


def _write_stream(stream: TextIO, text: str) -> None:
    """Characters that the stream's encoding lacks are spelt out instead of raising."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ReportError(f"the report cannot be printed ({error.strerror})") from error
