"""How long ranks are waited for: a time without progress, and less once it is certain that nothing more will come."""

import time
from dataclasses import dataclass

from ddplint.record.forkserver import START_TIMEOUT
from ddplint.record.member import Member
from ddplint.record.stacks import collective

RENEW_TIMEOUT = 5.0
"""Seconds in which ranks that have served a job before must have their process group for the next."""
GRACE = 1.0
"""Seconds of idleness (no CPU time used or wanted, no message) after which the ranks beside a failed one count as left behind."""
LONGEST_GRACE = 10.0
DEADLOCK = 3.0
"""Seconds of idleness after which ranks that all wait in collectives are taken for deadlocked."""
POLL = 0.1
_IDLE_SHARE = 0.2      # of one core


@dataclass
class Patience:
    """Says when the pending ranks of a job have had enough time."""

    members: list[Member]
    timeout: float
    reused: bool = False

    def __post_init__(self) -> None:
        now = time.monotonic()
        self._progress = self._busy = self._sampled = self._looked = now
        self._cpu: dict[int, float] = {}

    def heard(self) -> None:
        """A message came: progress, on whichever rank."""
        self._progress = self._busy = time.monotonic()

    @property
    def limit(self) -> float:
        """Seconds without a message after which it is over, whatever the ranks are doing."""
        if all(m.settled for m in self.members if m.pending):
            return self.timeout
        return RENEW_TIMEOUT if self.reused else max(START_TIMEOUT, self.timeout)

    def over(self) -> bool:
        """Whether the ranks that are still pending are to be ended now."""
        now = time.monotonic()
        silent = now - self._progress
        if silent > self.limit:
            return True
        idle = self._idle(now)
        if any(m.transcript.failure is not None or not (m.pending or m.usable) for m in self.members):
            return idle > GRACE or silent > LONGEST_GRACE           # also before all are up: they wait for each other then
        if not all(m.settled for m in self.members if m.pending):
            return False
        return idle > DEADLOCK and self._deadlocked(now)

    def _idle(self, now: float) -> float:
        """For how long no pending rank has used CPU time, or wanted to; 0 where that is not known."""
        if now - self._sampled >= POLL:
            used = {m.rank: m.cpu_seconds() for m in self.members if m.pending}
            if None in used.values():
                self._busy = now
                return 0.0
            share = max((used[r] - self._cpu.get(r, 0.0) for r in used), default=0.0) / (now - self._sampled)
            if share > _IDLE_SHARE or any(m.wants_to_run() for m in self.members if m.pending):
                self._busy = now
            self._cpu, self._sampled = used, now
        return now - self._busy

    def _deadlocked(self, now: float) -> bool:
        """Every rank waits in a collective, or has done its job. Looked at once per DEADLOCK seconds."""
        if now - self._looked < DEADLOCK or any(m.backend != "gloo" for m in self.members):     # NCCL spins, gloo sleeps
            return False
        self._looked, pending = now, [m for m in self.members if m.pending]
        for member in pending:
            member.ask_stack()
        return all(collective(member.read_stack()) for member in pending)
