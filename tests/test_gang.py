"""The gang, with real processes: every way in which a rank can end is data, and nothing stays behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ddplint.record import forkserver, processes
from ddplint.record.gang import Gang
from ddplint.record.kept import keep_ranks, local_gang
from ddplint.spec import Run, Spec

FOLDER = Path(__file__).parent / "faulty"
ROOT = Path(__file__).parent.parent


def spec(timeout=20.0, world_size=2):
    return Spec(model={}, run=Run(timeout=timeout, device="cpu", world_size=world_size), folder=str(FOLDER))


def run(job, timeout=20.0, world_size=2, **kwargs):
    with Gang(spec(timeout, world_size)) as gang:
        return gang.run(f"jobs:{job}", **kwargs)


def bodies(transcript, kind):
    return [body for name, body in transcript.messages if name == kind]


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    yield
    assert processes.descendants([forkserver.server_pid()]) == set()


# ------------------------------------------------------------------ healthy jobs

def test_each_rank_runs_the_job_in_one_process_group():
    transcripts = run("healthy", world_size=3)
    assert [bodies(t, "sum") for t in transcripts] == [[[3.0, 3.0]]] * 3
    assert [t.failure for t in transcripts] == [None] * 3


def test_a_job_gets_its_keywords_and_its_place_and_prints_nowhere(capfd):
    transcripts = run("count", words=["a"])
    assert [bodies(t, "said") for t in transcripts] == [[(0, 2, "cpu", ["a"])], [(1, 2, "cpu", ["a"])]]
    assert all("not on the terminal" in t.output and "nor this" in t.output for t in transcripts)
    assert capfd.readouterr() == ("", "")


def test_a_gang_serves_job_after_job_with_the_same_processes():
    with Gang(spec()) as gang:
        first, second = ([bodies(t, "pid") for t in gang.run("jobs:pids")] for _ in range(2))
    assert first == second


def test_a_kept_gang_serves_one_test_after_another_in_one_environment(monkeypatch):
    """pytest writes the name of each test into the environment."""
    def gang():
        with local_gang(spec(), None) as found:
            return found

    with keep_ranks():
        first = gang()
        monkeypatch.setenv("PYTEST_CURRENT_TEST", "another")
        assert gang() is first
        monkeypatch.setenv("MODE", "another")
        assert gang() is not first


@pytest.mark.parametrize(("job", "keywords", "kept"), [
    ("raise_on", {"ranks": [0, 1]}, True),                 # nothing is broken: each job has its own process group
    ("raise_on", {"ranks": [0]}, False),
    ("leave", {"how": "os._exit(0)"}, False),
    ("out_of_memory", {}, False),
])
def test_a_gang_is_replaced_only_when_a_job_broke_it(job, keywords, kept):
    with Gang(spec()) as gang:
        before = [bodies(t, "pid")[0] for t in gang.run("jobs:pids")]
        assert gang.run(f"jobs:{job}", **keywords)[0].failure is not None
        after = [bodies(t, "pid")[0] for t in gang.run("jobs:pids")]
    assert (before == after) is kept
    assert kept or not set(before) & set(after)


def test_a_rank_that_ends_between_two_jobs_is_replaced():
    with Gang(spec()) as gang:
        pid = bodies(gang.run("jobs:pids")[0], "pid")[0]
        os.kill(pid, signal.SIGKILL)
        assert [bodies(t, "sum") for t in gang.run("jobs:healthy")] == [[[2.0, 2.0]]] * 2


def test_what_blocks_the_next_job_costs_the_gang_not_the_job():
    with Gang(spec()) as gang:
        gang.run("jobs:poison")
        assert [bodies(t, "sum") for t in gang.run("jobs:healthy")] == [[[2.0, 2.0]]] * 2


def test_phases_are_told_as_they_are_entered():
    seen = []
    with Gang(spec(), on_phase=lambda *phase: seen.append(phase)) as gang:
        gang.run("jobs:healthy")
    assert sorted(seen) == [(0, 0, "forward"), (1, 0, "forward")]


def test_what_a_job_changed_is_put_back_before_the_next():
    with Gang(spec()) as gang:
        fresh = bodies(gang.run("jobs:look")[0], "state")
        assert gang.run("jobs:disturb")[0].failure is None
        assert bodies(gang.run("jobs:look")[0], "state") == fresh


def test_a_leftover_collective_does_not_reach_the_next_job():
    with Gang(spec()) as gang:
        gang.run("jobs:leftover")
        assert [bodies(t, "sum") for t in gang.run("jobs:healthy")] == [[[2.0, 2.0]]] * 2


def test_a_job_may_destroy_its_group():
    with Gang(spec()) as gang:
        gang.run("jobs:destroy_group")
        assert [bodies(t, "sum") for t in gang.run("jobs:healthy")] == [[[2.0, 2.0]]] * 2


def test_the_parents_environment_is_the_ranks(monkeypatch):
    monkeypatch.setenv("DDPLINT_TEST", "from the parent")
    assert bodies(run("look")[0], "state")[0]["env"] == "from the parent"


def test_ranks_listen_on_loopback_only():
    addresses = {address for t in run("listening") for found in bodies(t, "listening") for address in found}
    assert addresses == {"0100007F"}


def test_the_parent_imports_no_torch():
    code = "import sys, ddplint.record.gang; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# ------------------------------------------------------------------ exceptions

def test_an_exception_on_all_ranks_is_told_with_phase_and_the_users_frames():
    for transcript in run("raise_on", ranks=[0, 1]):
        failure = transcript.failure
        assert (failure.kind, failure.phase, failure.step) == ("raised", "backward", 1)
        assert (failure.type, failure.message) == ("ValueError", "the user's own words")
        assert [(f.file, f.function) for f in failure.frames] == [("jobs.py", "raise_on")]
        assert not failure.collateral


def test_an_exception_on_one_rank_leaves_the_other_as_collateral():
    innocent, guilty = run("raise_on", ranks=[1])
    assert (guilty.failure.kind, guilty.failure.collateral) == ("raised", False)
    assert (innocent.failure.kind, innocent.failure.collateral) == ("hung", True)
    assert innocent.failure.message == "ended because rank 1 had failed"
    assert [f.text for f in innocent.failure.frames] == ["dist.all_reduce(torch.ones(1))"]


def test_an_exception_while_importing_the_job():
    failures = [t.failure for t in run("no_such_job")]
    assert [(f.kind, f.phase, f.type) for f in failures] == [("raised", "idle", "AttributeError")] * 2


def test_a_second_process_group_of_the_users():
    failure = run("own_group")[0].failure
    assert (failure.kind, failure.message) == ("raised", "trying to initialize the default process group twice!")


def test_a_message_that_the_parent_cannot_read_is_told():
    assert "jobs" in bodies(run("unpicklable")[0], "unreadable")[0]


# ------------------------------------------------------------------ exits and signals

@pytest.mark.parametrize(("how", "status", "message"), [
    ("sys.exit", 0, "sys.exit(None)"),
    ("SystemExit(0)", 0, "sys.exit(0)"),
    ("sys.exit(text)", 1, "sys.exit('no data')"),
    ("os._exit(0)", 0, ""),
    ("os._exit(3)", 3, ""),
])
def test_an_exit_is_never_success(how, status, message):
    innocent, guilty = run("leave", how=how)
    failure = guilty.failure
    assert (failure.kind, failure.status, failure.message) == ("exited", status, message)
    assert (failure.phase, failure.step, failure.collateral) == ("terms", 1, False)
    assert innocent.failure.collateral


@pytest.mark.parametrize(("how", "name", "frames"), [
    ("SIGKILL", "SIGKILL", []),
    ("SIGTERM", "SIGTERM", []),
    ("SIGSEGV", "SIGSEGV", ["leave", "<lambda>"]),
    ("null pointer", "SIGSEGV", ["leave", "<lambda>"]),
    ("abort", "SIGABRT", ["leave", "<lambda>"]),
])
def test_a_signal_is_told_by_name(how, name, frames):
    innocent, guilty = run("leave", how=how)
    failure = guilty.failure
    assert (failure.kind, failure.type, failure.phase, failure.step) == ("killed", name, "terms", 1)
    assert [f.function for f in failure.frames] == frames
    assert not failure.collateral
    assert innocent.failure.collateral


def test_out_of_memory_is_told_on_its_rank():
    guilty, innocent = run("out_of_memory")
    assert (guilty.failure.kind, guilty.failure.type) == ("raised", "RuntimeError")
    assert "allocate memory" in guilty.failure.message
    assert innocent.failure.collateral


# ------------------------------------------------------------------ hangs

@pytest.mark.parametrize(("how", "frames"), [
    ("endless", ["leave", "endless"]),
    ("sleep", ["leave", "sleep"]),
    ("deadlock", ["leave", "deadlock"]),
    ("c_call", ["leave", "c_call"]),
])
def test_a_hang_ends_with_each_ranks_stack(how, frames):
    innocent, guilty = run("leave", timeout=2.0, how=how)
    failure = guilty.failure
    assert (failure.kind, failure.phase, failure.step) == ("hung", "terms", 1)
    assert (failure.message, failure.collateral) == ("no progress for 2 s", False)
    assert [f.function for f in failure.frames] == frames
    assert (innocent.failure.kind, innocent.failure.collateral) == ("hung", True)
    assert innocent.failure.message == "waits in all_reduce for the other ranks"


def test_a_rank_that_skips_a_collective_leaves_the_other_as_collateral_and_the_time_out_is_not_waited_for():
    left, waiting = run("skip_collective", timeout=10_000.0)
    assert left.failure is None
    assert (waiting.failure.kind, waiting.failure.collateral) == ("hung", True)
    assert waiting.failure.message == "waits in all_reduce for the other ranks"


def test_ranks_in_different_collectives():
    failures = [t.failure for t in run("different_collectives", timeout=10_000.0)]
    assert [f.message for f in failures] == ["waits in barrier for the other ranks", "waits in recv for the other ranks"]
    assert not any(f.collateral for f in failures)


def test_the_time_out_counts_from_the_last_progress():
    assert [t.failure for t in run("slow", timeout=5.0, seconds=0.7)] == [None, None]


# ------------------------------------------------------------------ what the program does to its process

@pytest.mark.parametrize("which", ["stderr"])
def test_a_closed_stderr_does_no_harm(which):
    assert [bodies(t, "sum") for t in run("close_descriptors", which=which)] == [[[2.0, 2.0]]] * 2


def test_closed_pipes_are_told():
    """The store's own thread may abort first, when it finds its descriptors closed."""
    failure = run("close_descriptors", which="all", world_size=1)[0].failure
    told = ("exited", "the program closed file descriptors that it did not open")
    assert (failure.kind, failure.message) == told or (failure.kind, failure.type) == ("killed", "SIGABRT")


def test_twenty_megabytes_of_output_are_cut_to_their_end():
    for transcript in run("print_much", megabytes=20):
        assert bodies(transcript, "sum") == [[2.0, 2.0]]
        assert transcript.output.endswith("\nthe last line\n")
        assert len(transcript.output) <= 65_536


@pytest.mark.parametrize("daemon", [False, True])
def test_what_a_rank_started_ends_with_it(daemon):
    pids = [pid for t in run("spawn", daemon=daemon) for pid in bodies(t, "pid")]
    assert [processes.cpu_seconds(pid) for pid in pids] == [None, None]


def test_data_loaders_start_their_workers_as_in_training():
    assert bodies(run("pids")[0], "start method") == [multiprocessing.get_start_method()]


def test_a_loader_with_worker_processes():
    assert bodies(run("workers", fail=None)[0], "batch") == [[0, 1], [2, 3]]


def test_a_loader_whose_worker_raises():
    failure = run("workers", fail=3)[0].failure
    assert (failure.kind, failure.type) == ("raised", "RuntimeError")
    assert "item cannot be read" in failure.message


# ------------------------------------------------------------------ solo

def test_a_solo_job_has_no_process_group():
    with Gang(spec()) as gang:
        assert bodies(gang.solo("jobs:alone", words="w"), "said") == [("w", False)]


@pytest.mark.parametrize(("how", "kind", "timeout"), [
    ("os._exit(3)", "exited", 20.0), ("SIGKILL", "killed", 20.0), ("endless", "hung", 0.5),
])
def test_a_solo_job_that_fails_is_data_and_leaves_the_gang(how, kind, timeout):
    with Gang(spec()) as gang:
        before = [bodies(t, "pid") for t in gang.run("jobs:pids")]
        assert gang.solo("jobs:alone_failing", how=how, timeout=timeout).failure.kind == kind
        assert [bodies(t, "pid") for t in gang.run("jobs:pids")] == before


# ------------------------------------------------------------------ the parent's end

def test_an_interrupt_keeps_what_was_said():
    with Gang(spec(), on_phase=lambda *_: signal.raise_signal(signal.SIGINT)) as gang:
        with pytest.raises(KeyboardInterrupt):
            gang.run("jobs:healthy")
        assert any(bodies(t, "phase") for t in gang.partial)


PARENT = """
import sys
from ddplint.record.gang import Gang
from ddplint.spec import Run, Spec

gang = Gang(Spec(model={}, run=Run(device="cpu"), folder=sys.argv[1]))
gang.run("jobs:pids")
print(*(t.messages[0][1] for t in gang.run("jobs:pids")), flush=True)
gang.run("jobs:wait_forever", how=sys.argv[2])
"""


@pytest.mark.parametrize("how", ["sleep", "c_call"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_end_with_a_parent_that_is_killed(number, how, tmp_path):
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, FOLDER, how], stdout=subprocess.PIPE, text=True, env=environ)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    server = processes.parent(pids[0])
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    gone = threading.Event()
    for _ in range(500):
        if not any(processes.cpu_seconds(pid) is not None for pid in [*pids, server]):
            break
        gone.wait(0.01)
    assert [processes.cpu_seconds(pid) for pid in [*pids, server]] == [None] * 3
    assert [path.name for path in tmp_path.iterdir() if "torchinductor" not in path.name] == []     # torch's own cache


def test_a_script_that_is_not_guarded_is_not_run_again_in_the_ranks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PARENT.replace('gang.run("jobs:wait_forever", how=sys.argv[2])', "gang.close()"))
    done = subprocess.run([sys.executable, script, FOLDER], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert len(done.stdout.split()) == 2
    assert done.stderr == ""
