"""Joining a launch: this process is a rank of torchrun (or submitit), and no parent watches it.

The same jobs run as in a local gang, on the launch's own group. Every rank gets every rank's transcript, so that all
reach the same verdict and exit status, and rank 0 prints it. What cannot be had here: a rank that is killed takes
the launch with it (rank 0 still reports what was seen), and a C call that never returns is ended by torchrun alone.
"""

import contextlib
import dataclasses
import gc
import os
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Self

from ddplint.errors import NoProgress, SpecError
from ddplint.evidence import Failure
from ddplint.launch import is_launched
from ddplint.record import source
from ddplint.record.alarm import Alarm, answered_within
from ddplint.record.blame import mark_followers
from ddplint.record.gang import Gang, OnPhase
from ddplint.record.kept import local_gang
from ddplint.record.member import OUTPUT_LIMIT, Transcript
from ddplint.record.rank import run_job
from ddplint.spec import Spec
from ddplint.views.failures import breaks_device

_CHUNK = 1 << 20                # bytes in one value of the store
_POLL = 0.02
_FAREWELL = 5.0
_PATIENCE = 10.0                # seconds beyond run.timeout for which a rank's transcript is waited for
_SOLO = 50.0                    # seconds that a solo run may need to start
_LAUNCHER_GRACE = 2.0           # seconds for which ranks are waited for once the launcher has ended one


def ranks(spec: Spec, on_phase: OnPhase | None = None) -> "AbstractContextManager[Gang | Launch]":
    """The ranks of a spec: those of the launch that this process belongs to, else a local gang."""
    if is_launched() and spec.run.engine in ("local", "torchrun"):
        return Launch(spec, on_phase)
    if spec.run.engine == "torchrun":
        raise SpecError("this process was not started by torchrun (RANK and WORLD_SIZE are not set)", where="run.engine",
                        hint="torchrun --nproc-per-node 2 -m ddplint ..., or run.engine=local")
    return local_gang(spec, on_phase)


class Launch:
    """Stands in for a Gang where the ranks exist already: the same ``run``, ``solo`` and ``partial``."""

    def __init__(self, spec: Spec, on_phase: OnPhase | None = None):
        from ddplint.record.group import launched_group
        from ddplint.record.preload import import_all
        from ddplint.record.state import State

        import_all()
        source.set_folder(spec.folder)
        self.group = launched_group(spec.run, timedelta(seconds=spec.run.timeout))
        self.group.store.set(f"ddplint/host/{self.group.rank}", socket.gethostname())
        self.spec = dataclasses.replace(spec, run=dataclasses.replace(spec.run, world_size=self.group.world_size))
        self._on_phase, self._state, self._jobs = on_phase, State(), 0
        self.partial: list[Transcript] = []
        self._lost: dict[int, Failure] = {}
        self._alarm = Alarm(spec.run.timeout)
        gc.freeze()                                   # keeps the collections between jobs short

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, target: str, **kwargs: Any) -> list[Transcript]:
        """Run a job on this rank, and return all ranks' transcripts."""
        if self._lost:
            return [self._not_run(rank) for rank in range(self.group.world_size)]
        own = self._run_here(target, kwargs)
        self._state.restore()
        with self._in_touch():
            self._put(own, self.group.rank)
            until = time.monotonic() + self._patience
            transcripts = self.partial = [self._get(rank, until) for rank in range(self.group.world_size)]
        self._jobs += 1
        _mark_waiting(transcripts)
        mark_followers(transcripts)
        self.group.stale = any(transcript.failure is not None for transcript in transcripts)
        self._lost |= {t.rank: _useless() for t in transcripts if t.failure is not None and breaks_device(t.failure)}
        return transcripts

    def solo(self, target: str, *, timeout: float | None = None, **kwargs: Any) -> Transcript:
        """Run a job in one process that rank 0 starts; every rank gets its transcript."""
        if self.group.rank == 0:
            with Gang(self.spec) as gang:
                self._put(gang.solo(target, timeout=timeout, **kwargs), 0)
        with self._in_touch(_SOLO):
            transcript = self._get(0, time.monotonic() + self._patience + _SOLO)
        self._jobs += 1
        return transcript

    def close(self) -> None:
        """Leave together: the store may live in rank 0."""
        import torch.distributed as dist

        with contextlib.suppress(RuntimeError), self._in_touch():
            self.group.store.set(f"ddplint/bye/{self.group.rank}", b"")
            keys = [f"ddplint/bye/{rank}" for rank in range(self.group.world_size) if rank not in self._lost]
            self._wait(keys, _FAREWELL)
        if dist.is_initialized() and not self._lost:
            dist.destroy_process_group()

    # ------------------------------------------------------------------ this rank

    def _run_here(self, target: str, kwargs: dict[str, Any]) -> Transcript:
        transcript = Transcript(self.group.rank)
        sender = _Recorder(transcript, self._alarm.rearm, self._on_phase)
        place = {"rank": self.group.rank, "world_size": self.group.world_size, "device": self.group.device}
        with _captured() as output, self._alarm:
            run_job(target, {**kwargs, **place, "spec": self.spec, "send": sender}, sender, self.group)
        transcript.output = bytes(output).decode("utf-8", "replace")
        failure = transcript.failure
        if failure is not None and failure.type == NoProgress.__name__:
            failure.kind, failure.type, failure.message = "hung", "", self._alarm.message
        return transcript

    # ------------------------------------------------------------------ what the others saw

    def _put(self, transcript: Transcript, rank: int) -> None:
        data = pickle.dumps(transcript)
        chunks = [data[i:i + _CHUNK] for i in range(0, len(data), _CHUNK)]
        for i, chunk in enumerate(chunks):
            self.group.store.set(f"ddplint/{self._jobs}/{rank}/{i}", chunk)
        self.group.store.set(f"ddplint/{self._jobs}/{rank}", str(len(chunks)))

    def _get(self, rank: int, until: float) -> Transcript:
        key = f"ddplint/{self._jobs}/{rank}"
        if not self._wait([key], until - time.monotonic()):
            self._lost[rank] = Failure("lost", "idle", message=self._gone(rank))
            return Transcript(rank, failure=self._lost[rank])
        count = int(self.group.store.get(key))
        return pickle.loads(b"".join(self.group.store.get(f"{key}/{i}") for i in range(count)))

    @property
    def _patience(self) -> float:
        return self.spec.run.timeout + _PATIENCE

    def _in_touch(self, more: float = 0.0) -> AbstractContextManager[None]:
        return answered_within(2 * self._patience + more, self.group.rank)

    def _gone(self, rank: int) -> str:
        """In how far a rank has gone without a word: where there are several hosts, it may have been cut off."""
        key, own = f"ddplint/host/{rank}", socket.gethostname()
        host = self.group.store.get(key).decode() if self._wait([key], 0.0) else "unknown"
        return "ended without a word" if host == own else f"host '{host}' is down or cut off, or has ended it"

    def _not_run(self, rank: int) -> Transcript:
        followed = Failure("not run", "idle", message=f"rank {min(self._lost)} is gone", collateral=True)
        return Transcript(rank, failure=self._lost.get(rank, followed))

    def _wait(self, keys: list[str], seconds: float) -> bool:
        """Whether the keys come within some seconds, or soon after the launcher has asked this process to end."""
        pause, start = threading.Event(), time.monotonic()
        with contextlib.suppress(RuntimeError):        # the store is gone
            while not self.group.store.check(keys):
                waited = time.monotonic() - (self._alarm.stopped or start)
                if waited > (_LAUNCHER_GRACE if self._alarm.stopped else seconds):
                    return False
                pause.wait(_POLL)
            return True
        return False


def _useless() -> Failure:
    return Failure("not run", "idle", message="an error of the scenario before leaves this process no use of its GPU")


def _mark_waiting(transcripts: list[Transcript]) -> None:
    """Ranks that hung in a collective followed from those that did not come."""
    failures = [t.failure for t in transcripts]
    if all(f is not None and f.message.startswith("waits in") for f in failures):
        return
    for failure in failures:
        if failure is not None and failure.kind == "hung" and failure.message.startswith("waits in"):
            failure.collateral = True


class _Recorder:
    """``send`` of a job that runs in this process."""

    def __init__(self, transcript: Transcript, on_progress: Callable[[], None], on_phase: OnPhase | None):
        self._transcript, self._on_progress, self._on_phase = transcript, on_progress, on_phase
        self.phase: str = "idle"
        self.step: int | None = None

    def __call__(self, kind: str, body: Any = None) -> None:
        self._on_progress()
        if kind == "settled":
            return
        self._transcript.messages.append((kind, body))
        if kind == "failure":
            self._transcript.failure = self._transcript.failure or body
        elif kind == "phase":
            self.phase, self.step = body
            if self._on_phase is not None:
                self._on_phase(self._transcript.rank, self.step, self.phase)


@contextlib.contextmanager
def _captured() -> Iterator[bytearray]:
    """What this process prints meanwhile goes into a buffer that keeps the end."""
    kept, saved = bytearray(), [os.dup(1), os.dup(2)]
    reader, writer = os.pipe()
    for fd in (1, 2):
        os.dup2(writer, fd)
    os.close(writer)
    thread = threading.Thread(target=_drain, args=(reader, kept), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        import sys
        for stream, fd, copy in ((sys.stdout, 1, saved[0]), (sys.stderr, 2, saved[1])):
            with contextlib.suppress(Exception):
                stream.flush()
            os.dup2(copy, fd)
            os.close(copy)
        thread.join(1.0)          # a process of the user's may hold the pipe open


def _drain(reader: int, kept: bytearray) -> None:
    while data := os.read(reader, 1 << 20):
        kept += data
        del kept[: max(0, len(kept) - OUTPUT_LIMIT)]
    os.close(reader)
