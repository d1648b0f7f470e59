"""Many gangs in one process: ranks killed at random moments, and what is left after many of them."""

import os
import random
import signal
import threading
from pathlib import Path

import pytest

from ddplint.record import forkserver, processes
from ddplint.record.gang import Gang
from ddplint.spec import Run, Spec

SPEC = Spec(model={}, run=Run(timeout=20.0, device="cpu"), folder=str(Path(__file__).parent / "faulty"))


class Killer:
    """Kills a random rank when the gang enters its n-th phase, or (n < 0) before the job begins."""

    def __init__(self, chance: random.Random):
        self.victim, self.left, self.gang = chance.randrange(2), chance.randrange(-1, 9), None

    def __call__(self, rank: int, step: int | None, phase: str) -> None:
        if self.left == 0:
            os.kill(self.gang._members[self.victim].process.pid, signal.SIGKILL)
        self.left -= 1


def kill_at_random(seed: int) -> None:
    killer = Killer(random.Random(seed))
    with Gang(SPEC, on_phase=killer) as killer.gang:
        transcripts = killer.gang.run("jobs:phases")
        victim, other = transcripts[killer.victim], transcripts[1 - killer.victim]
        if victim.failure is not None:
            assert (victim.failure.kind, victim.failure.type, victim.failure.collateral) == ("killed", "SIGKILL", False)
            assert victim.failure.phase in ("idle", "forward", "backward", "done")
        assert other.failure is None or other.failure.collateral
        assert (killer.left >= 0 or victim.failure is not None) or ("phase", ("done", 3)) in victim.messages
        assert [t.failure for t in killer.gang.run("jobs:healthy")] == [None, None]
    assert processes.descendants([forkserver.server_pid()]) == set()


@pytest.mark.slow
def test_a_rank_killed_at_any_moment_is_told_and_the_next_job_runs():
    for seed in range(100):
        kill_at_random(seed)


@pytest.mark.slow
def test_forty_gangs_leave_nothing():
    def held() -> tuple[int, int, int]:
        server = forkserver.server_pid()
        return len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{server}/fd")), threading.active_count()

    def work() -> None:
        with Gang(SPEC) as gang:
            gang.run("jobs:healthy")
            gang.run("jobs:leave", how="os._exit(3)")
            gang.solo("jobs:alone", words="w")
    work()
    before, memory = held(), _resident()
    for _ in range(40):
        work()
    assert held() == before
    assert _resident() - memory < 8


def _resident() -> float:
    """MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
