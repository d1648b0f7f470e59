"""The command line: compose, record each job, check once, render, exit status.

0: clean at ``fail_on``. 1: findings. 2: could not judge (a bad spec, a broken rule, no evidence). 130: interrupted.
"""

import contextlib
import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ddplint.errors import CANNOT_JUDGE, INTERRUPTED, UNREAD, DdplintError, ReportError, SpecError
from ddplint.launch import is_reporter, join_cluster
from ddplint.start import at_once

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ddplint.compose.sweep import JobResult
    from ddplint.evidence import Evidence
    from ddplint.spec import Judgement, Spec

# Commands beside the Hydra run: name -> "module:function" taking the remaining arguments; without torch, but for init.
COMMANDS = {
    "rules": "ddplint.commands.manual:rules",
    "explain": "ddplint.commands.manual:explain",
    "explain-error": "ddplint.commands.diagnosis:explain_error",
    "init": "ddplint.commands.init:init",
}


def entry() -> None:
    """The console script. Where the reader of a pipe has left (``| head``), the rest goes nowhere, without complaint."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:                      # closed by the caller: ``>&-``
            setattr(sys, name, open(os.devnull, "w"))       # noqa: SIM115 (for as long as the process lives)
    status = None
    try:
        with _ranks_ahead(sys.argv[1:]):
            status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        status = UNREAD
    except OSError as error:            # a full disk behind stdout; where the report failed on it, it has been told
        status = status or _complain(f"the output cannot be written ({error.strerror})")
    if status in (UNREAD, CANNOT_JUDGE):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # what is left in the buffer would raise again
    sys.exit(status)


@contextlib.contextmanager
def _ranks_ahead(argv: list[str]) -> Iterator[None]:
    """Where a lint in this process is coming, let the ranks' server import torch while Hydra composes."""
    options = [arg for arg in argv if arg.startswith("-") and arg not in ("-m", "--multirun")]
    elsewhere = "RANK" in os.environ or any(arg.lstrip("+").startswith(("evidence=", "hydra/launcher=")) for arg in argv)
    if options or elsewhere or not any(arg.startswith(("+model=", "model=")) for arg in argv):
        yield
        return
    from ddplint.record import forkserver
    forkserver.warm()
    try:
        yield
    finally:
        forkserver.stop()       # it may still be importing, where the command line was mistyped


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit status and raises nothing that a user could mend."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if (answer := at_once(argv)) is not None:
        print(answer)
        return 0
    first = argv[0] if argv else ""
    if first in COMMANDS:
        return _command(COMMANDS[first], argv[1:])
    if first and first[0].isalpha() and "=" not in first:
        return _complain(_unknown_command(first))
    with _importable(os.getcwd()):
        return _lint(argv)


def _command(place: str, argv: list[str]) -> int:
    module, _, function = place.partition(":")
    try:
        return getattr(importlib.import_module(module), function)(argv)
    except DdplintError as error:
        return _complain(str(error))


def _unknown_command(word: str) -> str:
    near = difflib.get_close_matches(word, COMMANDS, 1)
    hint = f"did you mean 'ddplint {near[0]}'?" if near else f"one of {', '.join(COMMANDS)}, or +model=NAME"
    return f"no command is called '{word}'; {hint}"


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    """A console script, like a launcher's worker, lacks the current folder on its path: ``_target_: net.Net`` must work."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


# ---------------------------------------------------------------------- the Hydra run


def _lint(argv: list[str]) -> int:
    from ddplint.compose import sweep
    from ddplint.compose.hydra_app import run_jobs
    from ddplint.record.kept import keep_ranks
    try:
        with keep_ranks():
            results = run_jobs(argv, job)
    except KeyboardInterrupt:
        left = sweep.collect()
        if not any(result.interrupted for result in left):          # while composing, or between two jobs
            print("ddplint: interrupted", file=sys.stderr)
        return _conclude(left, interrupted=True)
    except SystemExit as error:             # Hydra's own --help ends with 0, argparse with 2
        return error.code if isinstance(error.code, int) else CANNOT_JUDGE
    except BrokenPipeError:                 # --help | head
        raise
    except Exception as error:  # noqa: BLE001 (the last line of defence: never a traceback of ours)
        sweep.collect()
        return _complain(_in_words(error), traceback.format_exc())
    return _conclude(results) if results else 0


def job(cfg: "DictConfig") -> None:
    """One Hydra job, in this process or in a launcher's worker. Raises nothing but KeyboardInterrupt."""
    from ddplint.compose.hydra_app import start_folder
    from ddplint.compose.sweep import JobResult, leave
    result = JobResult()
    join_cluster()
    try:
        with _importable(start_folder()):
            _run(cfg, result)
    except KeyboardInterrupt as stop:
        result.evidence = getattr(stop, "evidence", None)       # errors.Interrupted: what was seen so far
        result.interrupted = True
        leave(result)
        raise
    except Exception as error:  # noqa: BLE001 (told in the report's place, with status 2)
        result.problem, result.traceback = _in_words(error), traceback.format_exc()
        result.evidence = getattr(error, "evidence", None)      # errors.StartError
    leave(result)


def _run(cfg: "DictConfig", result: "JobResult") -> None:
    """Fill the result, the judgement first: an interrupted job is judged too."""
    from ddplint.compose import check_root, parse, parse_judgement, parse_report
    from ddplint.compose.hydra_app import options, plain, start_folder
    from ddplint.compose.recorded import recorded
    from ddplint.render import check_files
    container, installed = plain(cfg), _installed_rules()
    check_root(container)
    result.report = parse_report(container)
    check_files(result.report)
    result.judgement = parse_judgement(container, installed)
    if container.get("evidence") is not None:
        result.evidence = recorded(container["evidence"])
        return
    _require(container, "model", options)
    _require(container, "scenario", options)
    spec = parse(container, folder=start_folder(), installed=installed)
    _check_judgement(spec.judgement)
    result.evidence = _record(spec)


def _check_judgement(judgement: "Judgement") -> None:
    """A rule's options, a house rule's path or an expectation that cannot be meant is told before anything is run."""
    from ddplint.check import check
    from ddplint.evidence import Evidence
    check(Evidence({}), judgement)


def _require(container: dict[str, Any], group: str, options: Any) -> None:
    if not container.get(group):
        names = ", ".join(options(group)) or f"a file of configs/{group}/"
        raise SpecError(f"no {group}", hint=f"+{group}=NAME, one of {names}")


def _installed_rules() -> list[str]:
    from ddplint.rules import catalogue
    return list(catalogue())


def _record(spec: "Spec") -> "Evidence | None":
    from ddplint.progress import Progress
    from ddplint.record import record
    with Progress() if is_reporter() else contextlib.nullcontext() as progress:
        return record(spec, progress)


# ---------------------------------------------------------------------- the verdict


def _conclude(results: list["JobResult"], interrupted: bool = False) -> int:
    """One report over all jobs; the status is the worst."""
    for result in results:
        if result.problem:
            _complain(result.problem, result.traceback)
    seen = [result for result in results if result.evidence is not None]
    interrupted = interrupted or any(result.interrupted for result in results)
    floor = INTERRUPTED if interrupted else CANNOT_JUDGE if any(r.problem for r in results) else 0
    if not seen:
        return floor or CANNOT_JUDGE
    try:
        return _judge(seen, floor)
    except DdplintError as error:
        return _complain(str(error))


def _judge(seen: list["JobResult"], floor: int) -> int:
    from ddplint.baseline import compare
    from ddplint.check import check
    from ddplint.compose.combine import combine
    from ddplint.evidence_file import merge
    from ddplint.render import show
    parts = [result.evidence for result in seen]
    evidence = merge(parts)
    report = check(evidence, combine([result.judgement for result in seen], parts))
    if floor:
        report.exit_status = max(report.exit_status, floor)
        report.notes.append("interrupted: this is what was seen until then" if floor == INTERRUPTED
                            else "not everything was seen: the error is told on stderr")
    if not is_reporter():
        return report.exit_status
    options = seen[0].report
    _all_of(lambda: compare(report, options), lambda: show(report, options), lambda: _write_evidence(options.evidence, evidence))
    return report.exit_status


def _all_of(*writers: Callable[[], None]) -> None:
    """Each writes what it can; the failures are told together, once nothing is left to write."""
    failures = []
    for writer in writers:
        try:
            writer()
        except ReportError as error:
            failures.append(str(error))
    if failures:
        raise ReportError("; ".join(failures))


def _write_evidence(file: str | None, evidence: "Evidence") -> None:
    from ddplint.evidence_file import to_json
    from ddplint.files import write_whole
    if file is None:
        return
    try:
        write_whole(file, to_json(evidence), errors="backslashreplace")
    except OSError as error:
        raise ReportError(f"report.evidence: {file} cannot be written ({error.strerror})") from error


# ---------------------------------------------------------------------- errors


def _in_words(error: BaseException) -> str:
    from ddplint.compose.messages import is_mendable, readable
    if is_mendable(error):
        return readable(error)
    return f"internal error: {type(error).__name__}: {error}; HYDRA_FULL_ERROR=1 shows the traceback"


def _complain(text: str, trace: str = "") -> int:
    from ddplint.progress import printable
    if is_reporter():
        if trace and os.environ.get("HYDRA_FULL_ERROR") == "1":
            print(trace, file=sys.stderr, end="")
        lines = [printable(line) for line in text.expandtabs(2).splitlines()]
        print("ddplint: error: " + "\n  ".join(lines), file=sys.stderr)
    return CANNOT_JUDGE
