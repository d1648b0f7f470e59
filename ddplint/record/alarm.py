"""The time limits of a rank that no parent watches."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from ddplint.errors import CANNOT_JUDGE, NoProgress
from ddplint.record import stacks


class Alarm:
    """Raises NoProgress in the main thread after ``timeout`` seconds, or when the launcher sends SIGTERM."""

    def __init__(self, timeout: float):
        self.timeout, self.message, self.stopped = timeout, "", 0.0
        self._running, self._main = False, threading.current_thread() is threading.main_thread()
        if self._main:
            signal.signal(signal.SIGTERM, self._on_signal)

    def __enter__(self) -> None:
        self._running = True
        if self._main:
            self._before = signal.signal(signal.SIGALRM, self._on_signal)
        self.rearm()

    def __exit__(self, *_: object) -> None:
        self._running = False
        if self._main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def rearm(self) -> None:
        if self._running and self._main:
            signal.setitimer(signal.ITIMER_REAL, self.timeout)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        where = stacks.collective(stacks.of_frame(frame))
        self.message = f"waits in {where} for the other ranks" if where else f"no progress for {self.timeout:g} s"
        if number == signal.SIGTERM:
            self.stopped = self.stopped or time.monotonic()
        if self._running:
            raise NoProgress(self.message)


@contextlib.contextmanager
def answered_within(seconds: float, rank: int) -> Iterator[None]:
    """End this process where the store does not answer: its calls know no limit, and the network may be cut."""
    def leave() -> None:
        words = f"the store of the launch has not answered rank {rank} on host '{socket.gethostname()}' for {seconds:g} s"
        print(f"ddplint: error: {words}", file=sys.stderr, flush=True)
        os._exit(CANNOT_JUDGE)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
