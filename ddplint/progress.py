"""What is running, told on stderr: a line that replaces itself on a terminal, one line per scenario in CI logs."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

REDRAW = 0.1
"""Seconds between two drawings of the live line: the ranks change phase far more often."""


class Progress:
    """The recorder calls ``scenario``, ``phase`` and ``done``. The end leaves no trace of the live line.

    Where it is a Ctrl-C, it says what was being done, whatever the stream.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock, self._drawn = stream or sys.stderr, clock, 0.0
        terminal = self._stream.isatty() and os.environ.get("TTY_INTERACTIVE") != "0" and os.environ.get("TERM") != "dumb"
        self._live = terminal and "CI" not in os.environ
        self._plain = not self._live and "CI" in os.environ
        self._label, self._ranks, self._now = "", {}, "the start"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._live:
            self._write("\r\x1b[2K")
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._write(f"ddplint: interrupted at {self._now}\n")

    def scenario(self, name: str, index: int, total: int) -> None:
        """Scenario ``index`` of ``total`` (from 0) begins."""
        self._label, self._ranks = f"[{index + 1}/{total}] {printable(name)}", {}
        self._now = f"{self._label}  the ranks are being started"
        self._draw(self._now)
        if self._plain and index == 0:
            self._write(f"ddplint: {self._now}\n")

    def phase(self, rank: int, step: int | None, phase: str) -> None:
        """A rank has entered a phase of a step (None before the first)."""
        self._ranks[rank] = phase if step is None else f"step {step} {phase}"
        states = [f"rank {r}: {text}" for r, text in sorted(self._ranks.items())[:4]]
        self._now = "  ".join([self._label, *states])
        if self._clock() - self._drawn >= REDRAW:
            self._draw(self._now)

    def done(self, name: str, outcome: str) -> None:
        if self._plain:
            self._write(f"ddplint: {self._label}: {outcome}\n")

    def _draw(self, text: str) -> None:
        if self._live:
            self._drawn = self._clock()
            self._write(f"\r\x1b[2K{text[: shutil.get_terminal_size().columns - 1]}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def printable(text: str) -> str:
    """Control characters and terminal escapes made visible."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
