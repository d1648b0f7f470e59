"""What the operating system knows of a rank: CPU time, descendants, its end. Linux has /proc; elsewhere less is known."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float | None:
    """The CPU time that all threads of a process have used; None where that is not known."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICK if fields else None


def wants_to_run(pid: int) -> bool:
    """Whether its main thread runs, waits for a core that others hold, or for a disk."""
    fields = _stat(pid)
    return fields is not None and fields[0] in "RD"


def parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command's name: state, parent, group, session, ...; None once it ended."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return fields if fields[0] not in "ZX" else None


def descendants(roots: Iterable[int]) -> set[int]:
    """All processes below the roots, without them."""
    children: dict[int, list[int]] = {}
    for pid, fields in _all().items():
        children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    pending = list(roots)
    while pending:
        for pid in children.get(pending.pop(), []):
            if pid not in found:
                found.add(pid)
                pending.append(pid)
    return found


def orphans(server: int, known: Iterable[int]) -> set[int]:
    """Daemons that ranks left behind: they fell to the fork server, and have a session of their own."""
    everyone = _all()
    session = everyone[server][3] if server in everyone else None
    return {pid for pid, fields in everyone.items()
            if int(fields[1]) == server and fields[3] != session and pid not in known} if session else set()


def _all() -> dict[int, list[str]]:
    pids = [int(entry.name) for entry in _PROC.glob("[0-9]*")] if _PROC.is_dir() else []
    return {pid: fields for pid in pids if (fields := _stat(pid))}


def kill(pids: Iterable[int], *, groups: Iterable[int] = ()) -> None:
    """SIGKILL for processes, and for whole process groups (a rank's data loader workers and subprocesses)."""
    for call, targets in ((os.killpg, groups), (os.kill, pids)):
        for target in targets:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                call(target, signal.SIGKILL)


def wait_for_end(pids: Iterable[int], seconds: float) -> None:
    """Return once none of the processes (which need not be this one's children) runs any more, or after ``seconds``."""
    left, end = set(pids), time.monotonic() + seconds
    while (left := {pid for pid in left if _stat(pid)}) and time.monotonic() < end:
        time.sleep(0.005)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
