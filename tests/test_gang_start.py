"""The time before the ranks are up: a fork server or a rank that is killed, is stopped or never answers is told in time."""

import os
import signal
from pathlib import Path

import pytest

from ddplint.errors import StartError
from ddplint.record import forkserver, patience, processes
from ddplint.record.gang import Gang
from ddplint.spec import Run, Spec

FOLDER = Path(__file__).parent / "faulty"
SPEC = Spec(model={}, run=Run(timeout=20.0, device="cpu"), folder=str(FOLDER))
HURRIED = Spec(model={}, run=Run(timeout=5.0, device="cpu"), folder=str(FOLDER))
SUMS = [[("phase", ("forward", 0)), ("sum", [2.0, 2.0])]] * 2


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    forkserver.start(os.getpid).join()           # the server is up and answers
    yield
    forkserver.start(os.getpid).join()
    assert processes.descendants([forkserver.server_pid()]) == set()


def healthy(gang: Gang) -> list:
    return [transcript.messages for transcript in gang.run("jobs:healthy")]


def failures(gang: Gang, job: str, **keywords) -> list[tuple]:
    told = [transcript.failure for transcript in gang.run(f"jobs:{job}", **keywords)]
    return [failure and (failure.kind, failure.type, failure.phase, failure.message, failure.collateral) for failure in told]


# ------------------------------------------------------------------ the fork server

def test_a_server_that_was_killed_is_replaced():
    with Gang(SPEC) as gang:
        os.kill(forkserver.server_pid(), signal.SIGKILL)
        assert healthy(gang) == SUMS


def test_a_server_whose_death_is_not_yet_seen_is_replaced(monkeypatch):
    """Linux closes a dying process's sockets first; until it is a zombie, waitpid takes it for alive."""
    waitpid = os.waitpid
    monkeypatch.setattr(os, "waitpid", lambda pid, options: (0, 0) if options & os.WNOHANG else waitpid(pid, options))
    with Gang(SPEC) as gang:
        os.kill(forkserver.server_pid(), signal.SIGKILL)
        assert healthy(gang) == SUMS


def test_a_server_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(forkserver, "START_TIMEOUT", 0.5)
    os.kill(forkserver.server_pid(), signal.SIGSTOP)
    said = "the ranks cannot be started: the process that imports torch for them failed (no answer within 0.5 s)"
    with Gang(SPEC) as gang, pytest.raises(StartError) as caught:
        gang.run("jobs:healthy")
    assert str(caught.value) == said
    monkeypatch.undo()
    with Gang(SPEC) as gang:
        assert healthy(gang) == SUMS


def test_a_server_that_dies_of_its_imports_is_given_up(monkeypatch, tmp_path):
    (tmp_path / "dies_when_imported.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(forkserver, "PRELOAD", "dies_when_imported")
    forkserver.stop()
    with Gang(SPEC) as gang, pytest.raises(StartError, match=r"it was killed, or its import crashed"):
        gang.run("jobs:healthy")


def test_a_server_that_is_killed_while_ranks_work_is_told_and_the_next_job_runs():
    with Gang(SPEC, on_phase=lambda *_: os.kill(forkserver.server_pid(), signal.SIGKILL)) as gang:
        told = {(kind, message) for kind, _, _, message, _ in failures(gang, "leave", how="sleep")}
        assert told == {("killed", "the process that had started the ranks was killed; they were ended")}
        gang._on_phase = None
        assert healthy(gang) == SUMS


def test_a_server_that_is_stopped_while_a_rank_ends_costs_the_gang_not_the_lint():
    with Gang(HURRIED) as gang:
        assert healthy(gang) == SUMS
        os.kill(forkserver.server_pid(), signal.SIGSTOP)
        assert [bool(failure) for failure in failures(gang, "leave", how="os._exit(3)")] == [True, True]
        assert healthy(gang) == SUMS


# ------------------------------------------------------------------ a rank

class EarlyEnd(Gang):
    """Sends a signal to rank 1 as soon as it exists, before it can have read what it is to do."""

    number = signal.SIGKILL

    def _member(self, rank, meeting):
        member = super()._member(rank, meeting)
        if rank == 1 and self.number:
            os.kill(member.process.pid, self.number)
        return member


def test_a_rank_that_is_killed_before_it_is_up_is_not_waited_for():
    with EarlyEnd(SPEC) as gang:
        assert failures(gang, "healthy") == [("hung", "", "idle", "ended because rank 1 had failed", True),
                                             ("killed", "SIGKILL", "idle", "", False)]
        gang.number = 0
        assert healthy(gang) == SUMS


def test_ranks_that_do_not_come_up_are_ended_in_time(monkeypatch):
    monkeypatch.setattr(patience, "START_TIMEOUT", 6.0)
    with EarlyEnd(HURRIED) as gang:
        gang.number = signal.SIGSTOP
        assert {message for *_, message, _ in failures(gang, "healthy")} == {"the ranks were not up within 6 s"}
        gang.number = 0
        monkeypatch.undo()
        assert healthy(gang) == SUMS


def test_half_a_message_is_not_waited_for():
    with Gang(HURRIED) as gang:
        assert [failure and failure[0] for failure in failures(gang, "half_a_message")] == ["hung", None]
