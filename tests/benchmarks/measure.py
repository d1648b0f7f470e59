"""Commands timed side by side: interleaved rounds, medians and spread; and the memory that a process tree holds."""

import contextlib
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


KEEP_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_ARENA_MAX": "1"}
"""Environment in which the C allocator keeps what it once had: how often it asks the system for pages, a fifth of a
training step on a virtual machine, differs by chance from one copy of a model to the next."""


@dataclass
class Row:
    """A line of the table. ``target`` is the limit that ``value`` must not exceed (None: only told)."""

    work: str
    value: float
    unit: str
    spread: str = ""
    target: float | None = None

    @property
    def verdict(self) -> str:
        return "" if self.target is None else "met" if self.value <= self.target else "MISSED"


@dataclass
class Command:
    name: str
    argv: list[str]
    folder: Path
    status: int = 0
    """The exit status that it must end with."""

    def run(self) -> tuple[float, float]:
        """Seconds by the clock, and seconds of processor time that the whole process tree took.

        RuntimeError with its output where it does not end as it must.
        """
        with tempfile.NamedTemporaryFile() as cost:
            ended = subprocess.run([sys.executable, __file__, cost.name, *self.argv], cwd=self.folder, env=environment(),
                                   text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if ended.returncode != self.status:
                raise RuntimeError(f"{self.name} ended with {ended.returncode}:\n{ended.stdout[-4000:]}")
            wall, processor = json.load(cost)
        return wall, processor


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}


def ddplint(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ddplint", *arguments]


def torchrun(script: Path, *arguments: str, ranks: int = 2) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--standalone", str(script), *arguments]


def interleaved(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """What each task returns, in ``rounds`` rounds of all of them in turn, after one round that warms the disk cache."""
    seen: dict[str, list[Any]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            value = task()
            if number:
                seen[name].append(value)
    return seen


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float], unit: str = "s") -> str:
    return f"{min(values):.2f}-{max(values):.2f} {unit}, n={len(values)}"


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Whose turn it is in a round: another is first in each."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def quartiles(above: Sequence[float], *below: Sequence[float]) -> tuple[float, str, str]:
    """The median of the rounds' ratios to the mean of those below, its unit, and its spread."""
    each = [value / statistics.mean(values) for value, *values in zip(above, *below, strict=True)]
    low, middle, high = statistics.quantiles(each)
    return middle, "x", f"quartiles {low:.3f}-{high:.3f}, n={len(each)}"


def ratio(above: list[float], below: list[float]) -> tuple[float, str]:
    """The ratio of the medians, and the range of the rounds' own ratios."""
    each = [a / b for a, b in zip(above, below, strict=True)]
    return median(above) / median(below), f"{min(each):.2f}-{max(each):.2f}, n={len(each)}"


def peak_memory(command: Command) -> float:
    """The largest proportional set size (MiB) of a command's whole process tree: shared pages count once. Linux only."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command.argv, cwd=command.folder, env=environment(), stdout=output, stderr=output)
        peak, pause = 0.0, threading.Event()
        while process.poll() is None:
            peak = max(peak, sum(map(_proportional_size, [process.pid, *_below(process.pid)])))
            pause.wait(0.05)
        output.seek(0)
        if process.returncode != command.status:
            raise RuntimeError(f"{command.name} ended with {process.returncode}: {output.read().decode(errors='replace')[-500:]}")
    return peak


def _proportional_size(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _below(pid: int) -> set[int]:
    sys.path.insert(0, str(ROOT))
    from ddplint.record.processes import descendants
    return descendants([pid])


def _measured(cost: str, argv: list[str]) -> int:
    """Run a command as the adopter of all that it leaves behind, such as the fork server; Linux only."""
    become_adopter = 36         # PR_SET_CHILD_SUBREAPER
    ctypes.CDLL(None).prctl(become_adopter, 1, 0, 0, 0)
    start = time.perf_counter()
    status = subprocess.run(argv, check=False).returncode
    wall = time.perf_counter() - start
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(cost).write_text(json.dumps([wall, used.ru_utime + used.ru_stime]))
    return status


if __name__ == "__main__":
    sys.exit(_measured(sys.argv[1], sys.argv[2:]))
