"""Joining a launch of torchrun's: the same jobs, every rank's transcript, and rank 0's word."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.errors import SpecError
from ddplint.launch import is_launched, is_reporter
from ddplint.record import join
from ddplint.record.gang import Gang
from ddplint.spec import Run, Spec

FOLDER = Path(__file__).parent / "faulty"


def launch(*jobs):
    """What rank 0 of two gets from each job, and what the launch printed on stderr."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1",
               "--master-port=0", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
               FOLDER / "launched.py", json.dumps([(f"jobs:{job}", keywords) for job, keywords in jobs])]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120,
                           env={**os.environ, "PYTHONPATH": str(FOLDER.parent.parent)})
    return [json.loads(line) for line in ended.stdout.splitlines()], ended.stderr


@pytest.mark.slow
def test_a_launch_runs_job_after_job_through_failures():
    results, errors = launch(("healthy", {}), ("count", {"words": "w"}), ("raise_on", {"ranks": [0, 1]}),
                             ("leave", {"how": "sleep"}), ("skip_collective", {}), ("disturb", {}), ("alone", {"words": "w"}),
                             ("healthy", {}))
    healthy, count, raised, hung, skipped, _, alone, again = results
    assert [t["messages"] for t in healthy] == [t["messages"] for t in again]
    assert [t["messages"] for t in count] == [[["said", [0, 2, "cpu", "w"]]], [["said", [1, 2, "cpu", "w"]]]]
    assert all("not on the terminal" in t["output"] for t in count)
    assert "nor this" not in errors
    assert [t["failure"]["message"] for t in raised] == ["the user's own words"] * 2
    assert [(t["failure"]["kind"], t["failure"]["message"], t["failure"]["collateral"]) for t in hung] == [
        ("hung", "waits in a collective for the other ranks", True), ("hung", "no progress for 2 s", False)]
    assert [f["function"] for f in hung[1]["failure"]["frames"]] == ["leave", "sleep"]
    assert [t["failure"] and t["failure"]["collateral"] for t in skipped] == [None, True]
    assert alone[0]["messages"] == [["said", ["w", False]]]


@pytest.mark.slow
def test_rank_0_reports_a_rank_that_ended_the_launch():
    results, _ = launch(("leave", {"how": "os._exit(3)"}), ("healthy", {}))
    (innocent, guilty), never_run = results
    assert innocent["failure"]["collateral"]
    assert (guilty["failure"]["kind"], guilty["failure"]["message"]) == ("lost", "ended without a word")
    assert [t["failure"]["message"] for t in never_run] == ["rank 1 is gone", "ended without a word"]


def test_without_a_launch_the_ranks_are_local(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert is_reporter()
    with join.ranks(Spec(model={})) as gang:
        assert isinstance(gang, Gang)
    with pytest.raises(SpecError, match=r"run\.engine: this process was not started by torchrun"):
        join.ranks(Spec(model={}, run=Run(engine="torchrun")))


def test_only_rank_0_of_a_launch_reports(monkeypatch):
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)
    assert is_launched()
    assert not is_reporter()
