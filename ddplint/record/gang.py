"""The gang: the processes that are the ranks. They serve job after job, and die as evidence.

A *job* is a function ``module:name`` that each rank calls with the spec, its place in the gang, ``send(kind, body)``
and the job's own keywords. It returns True where the rank is fit for another job. Whatever goes wrong (an exception,
an exit, a signal, a hang) is data: a Failure in the rank's Transcript. Imports no torch.
"""

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from typing import Any, Self

from ddplint.record import forkserver, processes, source
from ddplint.record.blame import give_up, mark_followers
from ddplint.record.member import Member, Transcript
from ddplint.record.patience import POLL, Patience
from ddplint.record.rank import ADDRESS, Meeting, Setup
from ddplint.spec import Spec

FAREWELL = 1.0
"""Seconds that healthy ranks get to run their exit handlers."""
END_WAIT = 2.0
"""Seconds in which a killed process must be gone; one that is not hangs in the kernel."""
OnPhase = Callable[[int, int | None, str], None]
_alive: set[int] = set()             # pids of all ranks of this process


class Gang:
    """Ranks, started by the first ``run`` and again after a job that broke them; they serve one spec after another.

    ``on_phase(rank, step, phase)`` is called as ranks enter phases. Where ``run`` ends by an exception (Ctrl-C),
    ``partial`` holds what the ranks had said until then.
    """

    def __init__(self, spec: Spec, on_phase: OnPhase | None = None):
        self._members, self._solo = [], []
        self._process = _of_this_process()
        self.take(spec, on_phase)
        forkserver.warm()

    def take(self, spec: Spec, on_phase: OnPhase | None = None) -> None:
        """Serve this spec from now on, one that ``fits``."""
        self.spec, self._on_phase = spec, on_phase
        self.partial: list[Transcript] = []
        source.set_folder(spec.folder)

    def fits(self, spec: Spec) -> bool:
        """Whether ranks that are up could as well have been started for this spec."""
        def world(spec: Spec) -> tuple:
            return spec.folder, spec.run.world_size, spec.run.device, spec.run.backend, spec.run.timeout

        return world(spec) == world(self.spec) and _of_this_process() == self._process

    def __enter__(self) -> Self:
        atexit.register(self.close)          # an exit without __exit__ would wait for the ranks forever
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        atexit.unregister(self.close)

    def run(self, target: str, **kwargs: Any) -> list[Transcript]:
        """Run a job on every rank; one transcript per rank. Ends within ``run.timeout`` without progress + 5 s."""
        if not all(member.process.is_alive() for member in self._members):     # one ended between two jobs
            self._end(self._members)
        reused = bool(self._members)
        self._members = self._members or self._start()
        transcripts = self._serve(self._members, Patience(self._members, self.spec.run.timeout, reused), target, kwargs)
        settled = all(member.settled for member in self._members)
        if not all(member.usable for member in self._members):
            self._end(self._members)
        if reused and not settled:           # the job before has left something behind: begin again with fresh ranks
            return self.run(target, **kwargs)
        return transcripts

    def solo(self, target: str, *, timeout: float | None = None, **kwargs: Any) -> Transcript:
        """Run a job in one process that has no process group; it may take ``timeout`` seconds (run.timeout).

        The process stays for the next such job while the jobs return True.
        """
        if not all(member.process.is_alive() for member in self._solo):
            self._end(self._solo)
        self._solo = self._solo or [self._member(0, None)]
        transcript = self._serve(self._solo, Patience(self._solo, timeout or self.spec.run.timeout), target, kwargs)[0]
        if not all(member.usable for member in self._solo):
            self._end(self._solo)
        return transcript

    def close(self) -> None:
        """End all ranks; healthy ones run their exit handlers."""
        self._end(self._solo)
        for member in self._members:
            with contextlib.suppress(OSError):
                member.orders.send(None)
        sentinels = [member.process.sentinel for member in self._members]
        while sentinels and (ended := wait(sentinels, FAREWELL)):
            sentinels = [s for s in sentinels if s not in ended]
        self._end(self._members)

    # ------------------------------------------------------------------ starting

    def _start(self) -> list[Member]:
        size, members = self.spec.run.world_size, []
        with socket.create_server((ADDRESS, 0)) as listener:
            port = listener.getsockname()[1]
            try:
                for rank in range(size):
                    meeting = Meeting(rank, size, port, listener if rank == 0 else None)
                    members.append(self._member(rank, meeting))
            except BaseException:
                self._end(members)
                raise
        return members

    def _member(self, rank: int, meeting: Meeting | None) -> Member:
        ranks = self.spec.run.world_size if meeting else 1
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = os.environ.get("OMP_NUM_THREADS", "")
        run, folder = self.spec.run, self.spec.folder
        setup = Setup(run, folder, dict(os.environ), int(threads) if threads.isdecimal() else max(1, cores // ranks), meeting)
        member = Member(rank, setup)
        _alive.add(member.process.pid)
        return member

    # ------------------------------------------------------------------ a job

    def _serve(self, members: list[Member], patience: Patience, target: str, kwargs: dict[str, Any]) -> list[Transcript]:
        try:
            for member in members:
                member.begin(target, {**kwargs, "spec": self.spec})
            self._watch(members, patience)
        except BaseException:
            self.partial = [member.finished() for member in members]
            self._end(members)
            raise
        transcripts = [member.finished() for member in members]
        mark_followers(transcripts)
        return transcripts

    def _watch(self, members: list[Member], patience: Patience) -> None:
        while any(member.pending for member in members):
            sources = {source: member for member in members for source in member.sources()}
            for ready in wait(list(sources), POLL):
                if sources[ready].read(ready, self._on_phase):
                    patience.heard()
            if patience.over():
                give_up(members, patience.limit)

    # ------------------------------------------------------------------ ending

    def _end(self, members: list[Member]) -> None:
        """Kill what is left of these ranks and of what they started, and wait until it is gone."""
        with _no_interrupt():
            pids = [member.process.pid for member in members]
            below = processes.descendants(pids)
            processes.kill([*pids, *below], groups=pids)
            for member in members:
                member.process.join(END_WAIT)
            if any(member.process.is_alive() for member in members):        # gone, but the server does not tell: it was stopped
                forkserver.stop()
            _alive.difference_update(pids)
            if not _alive and (server := forkserver.server_pid()):
                left = processes.orphans(server, [child.pid for child in forkserver.CONTEXT.active_children()])
                below |= left | processes.descendants(left)
                processes.kill(below)
            processes.wait_for_end(below, END_WAIT)
            for member in members:
                member.close()
            members.clear()


def _of_this_process() -> tuple[dict[str, str], list[str]]:
    """What ranks take over from this process: its environment (pytest writes the test's name there) and sys.path."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}, sys.path[:]


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Neither a Ctrl-C nor a SIGTERM stops the cleaning up; the first one comes right after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) is not None}    # None: not Python's
    for number in before:
        signal.signal(number, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
