"""The parent's view of one process of a gang: its pipes, what it said, how it ended."""

import contextlib
import fcntl
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from ddplint.evidence import Failure
from ddplint.record import forkserver, processes, stacks
from ddplint.record.lifeline import DUMP_SIGNAL
from ddplint.record.rank import LOST_PARENT, Setup, Wires, main
from ddplint.views.failures import DEVICE, classify

OUTPUT_LIMIT = 64 * 1024
"""Bytes of a rank's output that are kept: the last ones."""
_PIPE_SIZE = 1024 * 1024
_STACK_WAIT, _STACK_PAUSE = 1.0, 0.1      # seconds: for a dump to begin, and of silence after which it has ended


@dataclass
class Transcript:
    """What one process said and how it ended."""

    rank: int
    messages: list[tuple[str, Any]] = field(default_factory=list)
    """(kind, body) in the order in which they were sent."""
    failure: Failure | None = None
    """Sent by the job itself (raised), or found by the parent (exited, killed, hung)."""
    output: str = ""
    """The end of what it printed, standard output and error together."""


def _whole_messages(arrived: bytearray) -> Iterator[bytes]:
    """Take out of a buffer the messages that are there to their end, as multiprocessing's Connection frames them."""
    while len(arrived) >= 4:
        head, size = 4, int.from_bytes(arrived[:4], "big", signed=True)
        if size == -1:                                # more than 2 GiB: the size follows
            head, size = 12, int.from_bytes(arrived[4:12], "big")
        if len(arrived) < head + size:
            return
        message = bytes(arrived[head:head + size])
        del arrived[:head + size]
        yield message


class Member:
    """One process.

    ``pending``: from ``begin`` until it has finished its job or has ended. ``settled``: it has its process group for
    this job, and runs the job itself. ``usable``: it may get another job.
    """

    def __init__(self, rank: int, setup: Setup):
        self.rank, self.transcript = rank, Transcript(rank)
        self.pending = self.usable = self.ready = self.settled = False
        self.phase: tuple[str, int | None] = ("idle", None)
        self.main_thread: int | None = None
        self.backend = ""
        self._output, self._arrived = bytearray(), bytearray()
        pipe = forkserver.CONTEXT.Pipe
        (self.orders, jobs), (self._printed, output) = pipe(), pipe(duplex=False)
        (self._dumps, dumps), (parent, self._lifeline) = pipe(duplex=False), pipe(duplex=False)
        for end in (self._printed, self._dumps):
            os.set_blocking(end.fileno(), False)
        with contextlib.suppress(OSError, AttributeError):       # beyond the user's limit, or not Linux
            fcntl.fcntl(self._printed.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        wires = Wires(jobs, output, dumps, parent)
        try:
            self.process = forkserver.start(main, wires, setup)
        finally:
            for end in (jobs, output, dumps, parent):
                end.close()

    # ------------------------------------------------------------------ a job

    def begin(self, target: str, kwargs: dict[str, Any]) -> None:
        self.transcript, self.phase = Transcript(self.rank), ("idle", None)
        self.pending, self.usable, self.settled = True, False, False
        self._output.clear()
        with contextlib.suppress(OSError):            # it has ended meanwhile, which the watch will see
            self.orders.send((target, kwargs))

    def sources(self) -> list[Connection | int]:
        """What the parent waits for."""
        ends = [end for end in (self.orders, self._printed) if not end.closed]
        return [*ends, self.process.sentinel] if self.pending else ends

    def read(self, source: Connection | int, on_phase: Callable | None) -> bool:
        """Take what has arrived from one of ``sources()``; True where it shows progress."""
        if source is self._printed:
            self._drain(self._printed, self._output, OUTPUT_LIMIT)
            return False
        if source is self.orders:
            return self._read_messages(on_phase)
        self._ended(on_phase)
        return True

    def _read_messages(self, on_phase: Callable | None) -> bool:
        """Never waits for the rest of a message: the rank may have been stopped or killed in the middle of it."""
        try:
            data = os.read(self.orders.fileno(), _PIPE_SIZE)
        except OSError:
            data = b""
        if not data:
            self.orders.close()
            return False
        self._arrived += data
        for message in _whole_messages(self._arrived):
            try:
                kind, body = pickle.loads(message)
            except Exception as error:  # noqa: BLE001                    # a type that only the rank can import
                kind, body = "unreadable", f"{type(error).__name__}: {error}"
            self._take(kind, body, on_phase)
        return True

    def _take(self, kind: str, body: Any, on_phase: Callable | None) -> None:
        if kind == "ready":
            self.ready, (self.main_thread, self.backend) = True, body
        elif kind == "settled":
            self.settled = True
        elif kind == "done":
            self.pending, self.usable = False, body or self._only_raised()
        else:
            self.transcript.messages.append((kind, body))
        if kind == "failure":
            self.transcript.failure = self.transcript.failure or body        # the first: what follows may come of it
        elif kind == "phase":
            self.phase = body
            if on_phase is not None:
                on_phase(self.rank, body[1], body[0])

    def _only_raised(self) -> bool:
        """Whether the job failed in a way that leaves the process as good as before: each job has its own group."""
        failure = self.transcript.failure
        return self.backend == "gloo" and (failure is None or (
            failure.kind == "raised" and failure.type != "MemoryError" and "allocate" not in failure.message
            and classify(failure) not in DEVICE))

    # ------------------------------------------------------------------ its end

    def _ended(self, on_phase: Callable | None) -> None:
        while not self.orders.closed and self.orders.poll():
            self._read_messages(on_phase)
        if not self.pending:
            return
        self.process.join()
        self.pending, self.usable = False, False
        if self.transcript.failure is None:
            self.transcript.failure = self._failure_of_end(self.process.exitcode)

    def _failure_of_end(self, status: int) -> Failure:
        phase, step = self.phase
        self._drain(self._printed, self._output, OUTPUT_LIMIT)
        if status < 0:
            name = processes.signal_name(-status)
            message = self._last_words() if -status == signal.SIGABRT else ""
            return Failure("killed", phase, step, name, message, stacks.user_places(self._read_stack()))
        if processes.cpu_seconds(self.process.pid) is not None:        # 255 is what multiprocessing says then
            return Failure("killed", phase, step, message="the process that had started the ranks was killed; they were ended")
        message = "the program closed file descriptors that it did not open" if status == LOST_PARENT else ""
        return Failure("exited", phase, step, message=message, status=status)

    def _last_words(self) -> str:
        """What a C++ runtime or gloo wrote before abort()."""
        lines = [line.strip() for line in self._text().splitlines() if line.strip()]
        said = [line.partition("what():")[2].strip() for line in lines if "what():" in line]
        return (said or lines or [""])[-1]

    def ask_stack(self) -> None:
        """Ask for the stack of each thread; ``read_stack`` gets it."""
        self._read_stack()                            # what was not fetched before
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, DUMP_SIGNAL)

    def read_stack(self) -> list[stacks.Frame]:
        """Where the main thread is now, innermost first; empty where the process can't tell."""
        return self._read_stack(_STACK_WAIT)

    def _read_stack(self, wait: float = 0.0) -> list[stacks.Frame]:
        text, end = bytearray(), time.monotonic() + 2 * wait
        while not self._dumps.closed and select.select([self._dumps], [], [], wait)[0]:
            self._drain(self._dumps, text)
            wait = min(_STACK_PAUSE, wait) if time.monotonic() < end else 0.0
        return stacks.parse(text.decode("utf-8", "replace"), self.main_thread)

    def cpu_seconds(self) -> float | None:
        return processes.cpu_seconds(self.process.pid)

    def wants_to_run(self) -> bool:
        return processes.wants_to_run(self.process.pid)

    # ------------------------------------------------------------------ output

    def finished(self) -> Transcript:
        """The job's transcript, with what has been printed until now."""
        self._drain(self._printed, self._output, OUTPUT_LIMIT)
        self.transcript.output = self._text()
        return self.transcript

    def _text(self) -> str:
        return bytes(self._output).decode("utf-8", "replace")

    @staticmethod
    def _drain(end: Connection, into: bytearray, limit: int | None = None) -> None:
        """Move what has arrived, at most a pipe's content, into a buffer that keeps the last ``limit`` bytes."""
        if end.closed:
            return
        try:
            data = os.read(end.fileno(), _PIPE_SIZE)
        except BlockingIOError:
            return
        if not data:
            end.close()
        into += data
        if limit is not None and len(into) > limit:
            del into[: len(into) - limit]

    def close(self) -> None:
        """Close the parent's ends; the process must have ended."""
        for end in (self.orders, self._printed, self._dumps, self._lifeline):
            end.close()
        self.process.close()
