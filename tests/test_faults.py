"""Programs that fail in every way: what the whole lint says, with real processes. The limit of each is its time-out.

The program is tests/faulty/faulty_net.py: healthy but where the environment variable FAULT says ``place:how:ranks``.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.record import forkserver, processes

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = (ROOT / "tests/faulty/faulty_net.py").read_text()
MODEL = """
# @package _global_
model: {_target_: faulty_net.Net}
loss: {terms: {_target_: faulty_net.loss}}
optimizer: {_target_: faulty_net.Optimizer, lr: 0.01}
scenario:
  good: {batch: {_target_: faulty_net.batch, scenario: good}}
  bad: {batch: {_target_: faulty_net.batch, scenario: bad}}
run: {timeout: 60, device: cpu, causes: false}
"""
LOADERS = """
# @package _global_
model: {_target_: faulty_net.Net}
loss: {terms: {_target_: faulty_net.loss}}
scenario:
  %s: {loader: %s}
run: {timeout: 60, device: cpu, causes: false}
"""
PHASES = {"loss": "terms"}        # place in the program -> phase, where the names differ


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    yield
    assert processes.descendants([forkserver.server_pid()]) == set()


@pytest.fixture
def faulty(project, monkeypatch):
    """Lints the program with a fault: the exit status and the JSON report."""
    project.write("faulty_net.py", PROGRAM)
    project.write("configs/model/faulty.yaml", MODEL.lstrip())

    def lint(fault: str, *argv: str, model: str = "faulty") -> tuple[int, dict]:
        monkeypatch.setenv("FAULT", fault)
        ended = project.ddplint(f"+model={model}", *argv, "report.json=-", "report.terminal=false")
        assert ended.err == ""
        assert project.files() == ["configs", *sorted(f"configs/{p}" for p in written(project)), "faulty_net.py"]
        return ended.status, json.loads(ended.out)
    return lint


def written(project):
    return ["model", *(f"model/{path.name}" for path in (project.folder / "configs/model").iterdir())]


def errors(report: dict) -> list[dict]:
    return [finding for finding in report["findings"] if finding["severity"] == "error"]


def outcomes(report: dict) -> dict[str, str]:
    return {scenario["name"]: scenario["ddp"]["outcome"] for scenario in report["scenarios"]}


def line(finding: dict) -> str:
    """The source line that a finding names."""
    assert finding["cause"]["file"] == "faulty_net.py"
    return PROGRAM.splitlines()[finding["cause"]["line"] - 1].strip()


# ------------------------------------------------------------------ exceptions

def test_the_program_is_healthy_without_a_fault(faulty):
    status, report = faulty("none:raise:01")
    assert (status, errors(report), outcomes(report)) == (0, [], {"good": "ok", "bad": "ok"})


@pytest.mark.parametrize("ranks", ["01", "1"])
@pytest.mark.parametrize("place", ["import", "build", "wrap", "batch", "forward", "loss", "backward", "optimizer"])
def test_an_exception(faulty, place, ranks):
    status, report = faulty(f"{place}:raise:{ranks}")
    early = place in ("import", "build", "wrap")
    finding, = errors(report)
    assert status == 1
    assert finding["rule"] == "rank-failure"
    assert finding["ranks"] == [int(rank) for rank in ranks]
    assert finding["steps"] == ([] if early else [1])
    assert f"raised ValueError in {PHASES.get(place, place)}" in finding["message"]
    assert "the user's own words" in finding["message"]
    assert line(finding) == 'raise ValueError("the user\'s own words")'
    assert outcomes(report) == {"good": "error" if early else "ok", "bad": "error"}


# ------------------------------------------------------------------ exits and signals

@pytest.mark.parametrize(("how", "status"), [("sys.exit", 0), ("exit0", 0), ("_exit0", 0), ("_exit3", 3)])
def test_an_exit_is_never_read_as_success(faulty, how, status):
    ended, report = faulty(f"forward:{how}:1")
    finding, = errors(report)
    assert (ended, finding["rule"], finding["ranks"], finding["steps"]) == (1, "rank-failure", [1], [1])
    assert f"rank 1 exited with status {status} in forward" in finding["message"]
    assert outcomes(report)["good"] == "ok" and outcomes(report)["bad"] != "ok"


@pytest.mark.parametrize("how", ["say", "noise"])
def test_the_last_words_of_a_rank_are_attributed_even_after_100_mb_of_bytes(faulty, how):
    _, report = faulty(f"forward:{how}:1")
    finding, = errors(report)
    assert "rank 1 exited with status 3 in forward" in finding["message"]
    said = finding["cause"]["also"][-1]
    assert said.startswith("rank 1 printed: ") and said.endswith("no data left") and len(said) < 250
    assert "rank 0" not in "".join(finding["cause"]["also"])


@pytest.mark.parametrize(("how", "name"), [("kill", "SIGKILL"), ("segv", "SIGSEGV"), ("abort", "SIGABRT")])
def test_a_signal_is_named_and_the_innocent_rank_is_not_reported(faulty, how, name):
    status, report = faulty(f"backward:{how}:0")
    finding, = errors(report)
    assert (status, finding["rule"], finding["ranks"], finding["steps"]) == (1, "rank-failure", [0], [1])
    assert f"rank 0 was killed by {name} in backward" in finding["message"]
    assert outcomes(report) == {"good": "ok", "bad": "crashed"}


def test_out_of_memory(faulty):
    status, report = faulty("forward:memory:1")
    finding, = errors(report)
    assert (status, finding["rule"], finding["ranks"]) == (1, "rank-failure", [1])
    assert "allocate memory" in finding["message"]
    assert line(finding) == "torch.ones(1 << 28)"


# ------------------------------------------------------------------ hangs

@pytest.mark.parametrize(("how", "text"), [
    ("endless", "pass"), ("sleep", '"sleep": lambda: time.sleep(1000),'), ("deadlock", "lock.acquire()"),
    ("c_call", "ctypes.PyDLL(None).sleep(1000)"),
])
def test_a_hang_names_the_rank_and_its_line(faulty, how, text):
    status, report = faulty(f"forward:{how}:1", "run.timeout=3")
    finding = errors(report)[0]
    assert (status, finding["rule"], finding["ranks"], finding["steps"]) == (1, "rank-failure", [1], [1])
    assert "rank 1 hung in forward" in finding["message"] and "no progress for 3 s" in finding["message"]
    assert line(finding) in (text, "while True:")
    assert outcomes(report) == {"good": "ok", "bad": "hang"}


@pytest.mark.parametrize("place", ["forward", "loss", "optimizer"])
def test_a_collective_on_one_rank_only(faulty, place):
    status, report = faulty(f"{place}:collective:1")
    finding, = errors(report)
    assert (status, finding["rule"]) == (1, "collective-mismatch")
    assert line(finding) == '"collective": lambda: dist.all_reduce(torch.ones(1)),'


@pytest.mark.parametrize("fault", ["import:slow:1", "build:slow:1", "batch:slow:0", "forward:slow:0"])
def test_a_slow_rank_is_no_hang(faulty, fault):
    status, report = faulty(fault, "run.timeout=4")
    assert (status, outcomes(report)) == (0, {"good": "ok", "bad": "ok"})


ALONE = """
import os
import time
import torch
import torch.distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.unused, self.late = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x):
        alone = dist.get_backend() != "gloo"
        if os.environ["FAULT"] == "first" or (alone and os.environ["FAULT"] == "alone"):
            raise ValueError("no data here")
        if alone and os.environ["FAULT"] == "exit":
            os._exit(3)
        if alone and os.environ["FAULT"] == "reach":
            with open(os.environ["REACHED"], "w") as file:
                file.write("here")
            time.sleep(1000)
        return self.layer(x)


def loss(outputs, batch):
    return {"square": outputs.square().mean()}
"""
ALONE_MODEL = """
# @package _global_
model: {_target_: alone_net.Net}
loss: {terms: {_target_: alone_net.loss}}
scenario: {a: {batch: {shape: [3, 4]}}}
run: {timeout: 60, device: cpu}
"""


@pytest.fixture
def alone(project, monkeypatch):
    """Lints a program that raises in its first forward, or only in the run for causes."""
    project.write("alone_net.py", ALONE)
    project.write("configs/model/alone.yaml", ALONE_MODEL.lstrip())

    def lint(fault: str) -> dict:
        monkeypatch.setenv("FAULT", fault)
        return json.loads(project.ddplint("+model=alone", "report.json=-", "report.terminal=false").out)
    return lint


@pytest.mark.parametrize(("fault", "why"), [
    ("alone", "the solo run raised ValueError: no data here, which the real run did not"),
    ("exit", "the solo run exited in a process of its own"),
])
def test_causes_that_could_not_be_looked_for_are_noted(alone, fault, why):
    report = alone(fault)
    assert {finding["rule"] for finding in errors(report)} == {"unused-parameter"}
    assert report["notes"] == [f"scenario a: causes could not be looked for ({why})"]


def test_no_module_is_called_idle_where_no_forward_ended(alone):
    report = alone("first")
    assert "uncalled-module" not in {finding["rule"] for finding in report["findings"]}
    item = next(item for item in report["items"] if item["id"] == "gradients-arrive")
    assert (item["verdict"], item["examined"]) == ("not checked", 0)


# ------------------------------------------------------------------ loaders

@pytest.mark.parametrize(("loader", "rule", "text"), [
    ("{_target_: faulty_net.loader, scenario: good, workers: 2}", None, None),
    ("{_target_: faulty_net.uneven, scenario: good}", "uneven-inputs", "rank 0 had no batch for step 2"),
    ("{_target_: faulty_net.loader, scenario: good, workers: 1, fail: 2}", "rank-failure", "DataLoader worker process 0"),
    ("{_target_: faulty_net.loader, scenario: good, workers: 1, fail: -2}", "rank-failure", "exited unexpectedly"),
])
def test_a_loader(faulty, project, loader, rule, text):
    project.write("configs/model/loaders.yaml", LOADERS.lstrip() % ("items", loader))
    status, report = faulty("none:raise:0", model="loaders")
    assert {finding["rule"] for finding in errors(report)} == ({rule} if rule else set())
    assert all(text in finding["message"] for finding in errors(report))
    assert status == (1 if rule else 0)


def test_a_loader_that_is_short_on_every_rank_is_a_note(faulty, project):
    project.write("configs/model/loaders.yaml", LOADERS.lstrip() % ("items", "{_target_: faulty_net.loader, scenario: good, workers: 0, length: 4}"))
    status, report = faulty("none:raise:0", model="loaders")
    note = next(finding for finding in report["findings"] if finding["rule"] == "rank-failure")
    assert (status, note["severity"], note["ranks"]) == (0, "note", [0, 1])
    assert note["message"] == "run: ranks 0 and 1 raised LoaderEnded in batch, step 2: the loader of scenario 'items' ended before step 2"


def test_stop_iteration_in_a_batch(faulty):
    _, report = faulty("batch:stop:1")
    finding, = errors(report)
    assert "rank 1 raised StopIteration in batch" in finding["message"]


# ------------------------------------------------------------------ what the program does to its process

@pytest.mark.parametrize("how", ["subprocess", "chdir", "environ", "rng", "close2", "print", "binary", "stdout", "thread"])
def test_the_lint_is_unharmed(faulty, how):
    status, report = faulty(f"forward:{how}:01", "scenario={good:{batch:{_target_:faulty_net.batch,scenario:bad}},"
                            "bad:{batch:{_target_:faulty_net.batch,scenario:good}}}")
    assert (status, errors(report), outcomes(report)) == (0, [], {"good": "ok", "bad": "ok"})


def test_a_process_group_of_the_programs_own(faulty):
    _, report = faulty("forward:group:01")
    finding, = errors(report)
    assert "trying to initialize the default process group twice" in finding["message"]


FORMATS = ("json", "sarif", "markdown", "github", "gitlab", "junit", "html")


@pytest.mark.parametrize(("fault", "names", "shown"), [("forward:escapes:01", "", "bell"), ("none:raise:0", "1", "[31mred")])
def test_terminal_escapes_in_names_and_messages_are_neutralised(faulty, project, monkeypatch, fault, names, shown):
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("ODD_NAMES", names)
    ended = project.ddplint("+model=faulty", *(f"report.{name}=report.{name}" for name in FORMATS))
    assert (ended.status, ended.err) == (1, "")
    texts = {"terminal": ended.out} | {name: (project.folder / f"report.{name}").read_bytes().decode() for name in FORMATS}
    assert [name for name, text in texts.items() if shown not in text] == []
    assert {name: c for name, text in texts.items() for c in text if not (c.isprintable() or c == "\n")} == {}


# ------------------------------------------------------------------ the lint's own end

def test_two_lints_at_once_in_one_folder_say_the_same_byte_for_byte(faulty, project):
    started = []
    for seed in ("0", "1"):
        environment = {**os.environ, "FAULT": "backward:raise:1", "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        started.append(subprocess.Popen([sys.executable, "-m", "ddplint", "+model=faulty", "report.json=-", "report.terminal=false"],
                                        cwd=project.folder, env=environment, stdout=subprocess.PIPE, text=True))
    first, second = (process.communicate(timeout=60)[0] for process in started)
    assert first == second
    assert [process.returncode for process in started] == [1, 1]


def command(folder: Path, fault: str, model: str = "faulty") -> subprocess.Popen:
    """A lint as a process of its own, which tells in the file ``reached`` when a rank has come to the fault."""
    environment = {**os.environ, "FAULT": fault, "REACHED": str(folder / "reached"), "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    os.mkfifo(folder / "reached")
    return subprocess.Popen([sys.executable, "-m", "ddplint", f"+model={model}", "run.timeout=1000"], cwd=folder, env=environment,
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize(("place", "number", "times"), [
    ("import", signal.SIGINT, 1), ("forward", signal.SIGINT, 1), ("forward", signal.SIGINT, 2), ("forward", signal.SIGTERM, 1),
])
def test_an_interruption_reports_what_was_seen(faulty, project, place, number, times):
    process = command(project.folder, f"{place}:reach:1")
    rank = int((project.folder / "reached").read_text())
    below = processes.descendants([process.pid])
    assert rank in below
    for _ in range(times):
        process.send_signal(number)
    out, err = process.communicate(timeout=20)
    processes.wait_for_end(below, 5)
    assert [pid for pid in below if processes.cpu_seconds(pid) is not None] == []
    assert (process.returncode, "Traceback" in out + err) == (130, False)
    assert ("interrupted: this is what was seen until then" in out) is (place == "forward")
    assert err.startswith(f"ddplint: interrupted at {'[1/2] good' if place == 'import' else '[2/2] bad'}  rank ")


def test_an_interrupted_search_for_causes_reports_the_real_run(alone, project):
    process = command(project.folder, "reach", "alone")
    (project.folder / "reached").read_text()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err.startswith("ddplint: interrupted at [1/1] a  rank 0: ")) == (130, True)
    assert "unused-parameter" in out and "interrupted: this is what was seen until then" in out


def test_a_lint_that_is_killed_takes_its_ranks_with_it(faulty, project):
    process = command(project.folder, "forward:reach:1")
    rank = int((project.folder / "reached").read_text())
    below = processes.descendants([process.pid])
    assert rank in below
    process.kill()
    process.communicate(timeout=20)
    processes.wait_for_end(below, 5)
    assert [pid for pid in below if processes.cpu_seconds(pid) is not None] == []
    assert [p.name for p in project.folder.iterdir() if p.name.startswith(("pymp", "tmp"))] == []
