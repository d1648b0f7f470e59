"""What runs in a rank: it waits for jobs, runs them, and sends what they see to the parent."""

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import pkgutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from ddplint.errors import SpecError
from ddplint.evidence import Failure
from ddplint.record import lifeline, source
from ddplint.spec import Run

if TYPE_CHECKING:                       # the parent imports this module, and must not import torch
    from ddplint.record.group import Group

ADDRESS = "127.0.0.1"
MESSAGE_LIMIT = 4_000
LOST_PARENT = 70
"""The exit status of a rank that cannot reach the parent any more: the user's code closed its descriptors."""


@dataclass
class Wires:
    """The rank's ends of its pipes to the parent."""

    jobs: Connection
    output: Connection
    stacks: Connection
    parent: Connection
    """Readable when the parent is gone."""


@dataclass
class Meeting:
    """Where the ranks of a gang meet."""

    rank: int
    world_size: int
    port: int
    listener: socket.socket | None
    """The listening socket of the store, bound to loopback by the parent; rank 0's only."""


@dataclass
class Setup:
    run: Run
    folder: str
    environ: dict[str, str]
    threads: int
    meeting: Meeting | None
    """None in a solo process, which has no process group."""


@dataclass
class Sender:
    """Sends messages to the parent, from any thread (autograd's own run hooks), and remembers the phase."""

    jobs: Connection
    phase: str = "idle"
    step: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, kind: str, body: Any = None) -> None:
        if kind == "phase":
            self.phase, self.step = body
        try:
            with self._lock:
                self.jobs.send((kind, body))
        except OSError:
            os._exit(LOST_PARENT)


def main(wires: Wires, setup: Setup) -> None:
    """The life of a rank: set up, then job after job until the parent sends None."""
    _settle(wires, setup)
    send = Sender(wires.jobs)
    place, group = {}, None
    try:
        import torch

        from ddplint.record.group import local_group
        from ddplint.record.state import State

        torch.set_num_threads(setup.threads)
        if setup.meeting is not None:
            group = local_group(setup.run, setup.meeting)
            place = {"rank": setup.meeting.rank, "world_size": setup.meeting.world_size, "device": group.device}
        state = State()
    except BaseException as error:  # noqa: BLE001
        report(error, send)
        send("done", False)
        _next(wires.jobs)
        lifeline.end(1)
    send("ready", (threading.main_thread().ident, group.backend if group else ""))
    while (order := _next(wires.jobs)) is not None:
        target, kwargs = order
        state.restore()
        _redirect(wires.output)
        usable = run_job(target, {**kwargs, **place, "send": send}, send, group)
        _flush()
        send("done", usable)
    lifeline.end(0)


def run_job(target: str, kwargs: dict[str, Any], send: Callable, group: "Group | None" = None) -> bool:
    """Run ``module:function``; whatever escapes becomes a Failure. False if the process must not run another job."""
    send.phase, send.step = "idle", None
    try:
        if group is not None:
            group.renew()
        send("settled")
        return bool(pkgutil.resolve_name(target)(**kwargs))
    except BaseException as error:  # noqa: BLE001 (SystemExit is evidence too)
        report(error, send)
        return False
    finally:
        if group is not None and (used := group.used()) is not None:
            send("device", used)


def report(error: BaseException, send: Sender) -> None:
    """Send an exception that ended a job: a mistake in the spec as its sentence, anything else as a Failure."""
    if isinstance(error, SpecError):
        send("spec-error", str(error))
    else:
        send("failure", describe(error, send.phase, send.step))


def describe(error: BaseException, phase: str, step: int | None) -> Failure:
    """An exception that ended a job; an exit counts as what it is."""
    frames = source.user_frames(error) or getattr(error, "places", [])
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        return Failure("exited", phase, step, "SystemExit", f"sys.exit({error.code!r})", frames, status=status)
    return Failure("raised", phase, step, type(error).__name__, str(error)[:MESSAGE_LIMIT], frames)


def _settle(wires: Wires, setup: Setup) -> None:
    """A process group of its own, no terminal, output to the parent, the lint's folder first on sys.path."""
    os.setsid()
    _leave_fork_server()
    lifeline.die_with(wires.parent)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    _redirect(wires.output)
    lifeline.tell_stacks(wires.stacks)
    signal.signal(signal.SIGINT, signal.SIG_IGN)           # Ctrl-C is the parent's matter
    os.environ.clear()
    os.environ.update(setup.environ)
    folder = os.path.abspath(setup.folder)
    if os.path.isdir(folder):
        os.chdir(folder)
    sys.path[:] = [folder, *(p for p in sys.path if p != folder)]
    source.set_folder(folder)


def _redirect(output: Connection) -> None:
    with contextlib.suppress(OSError):               # the user's code closed it
        for fd in (1, 2):
            os.dup2(output.fileno(), fd)


def _leave_fork_server() -> None:
    """Forget the server that this rank came from: it must end with the parent, and a user's processes with the rank.

    Data loaders get the platform's own start method back, as in training.
    """
    multiprocessing.set_start_method(None, force=True)
    with contextlib.suppress(AttributeError, TypeError, OSError):       # private names: another Python may have others
        server = multiprocessing.forkserver._forkserver
        os.close(server._forkserver_alive_fd)
        server.__init__()


def _next(jobs: Connection) -> tuple[str, dict[str, Any]] | None:
    try:
        return jobs.recv()
    except (EOFError, OSError):
        return None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):         # the user's code closed or replaced it
            stream.flush()
