"""Whole lints under real DDP: the shipped examples, a user's own project, sweeps, and how a run is stopped."""

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def lint(project, *argv: str) -> tuple[int, dict]:
    """The exit status and the JSON report."""
    ended = project.ddplint(*argv, "report.json=-", "report.terminal=false")
    assert ended.err == ""
    return ended.status, json.loads(ended.out)


def told(report: dict) -> list[tuple]:
    """Every error as (rule, parameters' first names, scenarios)."""
    return [(f["rule"], sorted({p.split(".")[0] for p in f["parameters"]}), f["scenarios"])
            for f in report["findings"] if f["severity"] == "error"]


def test_the_first_command_of_the_readme(project):
    status, report = lint(project, "+model=multitask")
    assert (status, report["exit_status"]) == (1, 1)
    assert told(report) == [("unused-parameter", ["seg_head"], ["typical", "background_only"])]
    finding = report["findings"][0]
    assert (finding["outputs"], finding["ranks"], finding["cause"]["kind"]) == (["seg"], [0, 1], "output-not-in-loss")
    assert finding["cause"]["file"].endswith("examples/multitask.py")
    line = (ROOT / "examples/multitask.py").read_text().splitlines()[finding["cause"]["line"] - 1]
    assert '"seg": self.seg_head(features)' in line
    assert {s["name"]: (s["ddp"]["outcome"], s["ddp"]["step"]) for s in report["scenarios"]} == {
        "typical": ("error", 1), "background_only": ("error", 1)}
    assert project.files() == []


def test_the_complete_loss_heals_it(project):
    status, report = lint(project, "+model=multitask", "loss=multitask_complete")
    assert (status, report["findings"]) == (0, [])
    assert {item["verdict"] for item in report["items"]} <= {"pass", "not checked"}
    assert [item["id"] for item in report["items"] if item["verdict"] == "not checked" and not item["because"]] == []


def test_a_sweep_shows_each_branch_in_one_scenario_only(project):
    status, report = lint(project, "-m", "+model=dynamic", "scenario=positive,negative")
    assert status == 1
    assert sorted(told(report)) == [("unused-parameter", ["bright"], ["negative"]), ("unused-parameter", ["dark"], ["positive"])]
    assert report["usage"]["bright.weight"] == {"positive": [1, 1], "negative": [0, 0]}
    assert report["usage"]["dark.weight"] == {"positive": [0, 0], "negative": [1, 1]}
    assert report["settings"]["find_unused_parameters"]["value"] is True
    assert project.files() == []


def test_ranks_that_disagree_are_both_named_with_both_branches(project):
    _, report = lint(project, "+model=dynamic", "scenario=ranks_disagree")
    finding = next(f for f in report["findings"] if f["rule"] == "rank-divergent-usage")
    assert (finding["ranks"], finding["scenarios"]) == ([0, 1], ["ranks_disagree"])
    assert sorted(finding["parameters"]) == ["bright.bias", "bright.weight", "dark.bias", "dark.weight"]
    assert finding["cause"]["kind"] == "module-not-called" and "x.mean() > 0" in finding["cause"]["text"]
    outcome = next(s["ddp"] for s in report["scenarios"] if s["name"] == "ranks_disagree")
    assert outcome["outcome"] == "error" and outcome["message"].startswith("Expected to have finished reduction")


@pytest.mark.parametrize(("model", "errors", "cause"), [
    ("tied", [("shared-parameter-coverage", ["embedding"], ["typical"])], None),
    ("routed", [("unused-parameter", ["experts"], ["typical"])], "module-not-called"),
    ("detector", [("rank-divergent-usage", ["box_head"], ["one_rank_without_boxes"]),
                  ("unused-parameter", ["box_head"], ["no_boxes"])], "module-not-called"),
])
def test_the_other_examples(project, model, errors, cause):
    status, report = lint(project, f"+model={model}")
    assert (status, sorted(told(report))) == (1, errors)
    assert cause is None or {f["cause"]["kind"] for f in report["findings"]} == {cause}


@pytest.mark.parametrize("argv", [
    ["+model=tied", "model.detach_lookup=false"],
    ["+model=detector", "model.touch_empty=true"],
    ["+model=dynamic", "scenario=ranks_disagree", "+ddp=find_unused"],
], ids=lambda argv: argv[0].removeprefix("+model="))
def test_what_heals_them(project, argv):
    status, report = lint(project, *argv)
    assert (status, told(report)) == (0, [])


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs the extra [transformers]")
def test_a_model_that_nobody_here_wrote(project):
    status, report = lint(project, "+model=hf_bert")
    assert (status, told(report)) == (1, [("unused-parameter", ["pooler"], ["typical"])])
    assert report["findings"][0]["outputs"] == ["pooler_output"]


NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.used, self.idle = nn.Linear(3, width), nn.Linear(3, width)

    def forward(self, x):
        return {"loss": self.used(x).square().mean()}

def hang(model, batch, optimizer):
    import torch.distributed as dist
    loss = model(**batch)["loss"]
    if dist.get_rank() == 0:
        loss.backward()
        optimizer.step()
"""
MODEL = """# @package _global_
model: {_target_: net.Net, width: 4}
scenario:
  a: {batch: {x: {shape: [2, 3]}}}
"""
RULE = '''
from ddplint import Problem, rule
from ddplint.views import ParameterView

@rule(severity="warning", checks="gradients")
def wide_enough(parameter: ParameterView, *, least: int = 2):
    """Every parameter has a first extent of at least ``least``."""
    if parameter.shape[0] < least:
        return Problem(f"{parameter.shape[0]} < {least}")
'''


@pytest.fixture
def mine(project):
    project.write("net.py", NET)
    project.write("configs/model/mine.yaml", MODEL)
    return project


def test_a_users_project_of_two_files(mine):
    status, report = lint(mine, "+model=mine")
    assert (status, told(report)) == (1, [("unused-parameter", ["idle"], ["a"])])
    assert (report["findings"][0]["cause"]["file"], report["findings"][0]["cause"]["kind"]) == ("net.py", "module-not-called")


def test_an_acceptance_is_shown_with_its_reason(mine):
    accepted = "accept=[{rule: unused-parameter, match: 'idle.*', because: a later phase},"
    accepted += "{rule: zero-gradient, match: 'x', because: nothing}]"
    ended = mine.ddplint("+model=mine", "ddp.find_unused_parameters=true", accepted)
    assert ended.status == 0
    assert "accepted: a later phase" in ended.out
    assert "zero-gradient x" in ended.out       # an acceptance that matched nothing is told


def test_a_house_rule_with_options(mine):
    mine.write("house.py", RULE)
    mine.write("configs/rules/house.yaml", "wide-enough: {_target_: house.wide_enough, least: 5}\nunused-parameter: off\n")
    _, report = lint(mine, "+model=mine", "rules=house", "report.fail_on=warning")
    found = [f for f in report["findings"] if f["rule"] == "wide-enough"]
    assert [(f["severity"], f["message"].rpartition(": ")[2]) for f in found] == [("warning", "4 < 5")]


@pytest.mark.parametrize(("setting", "message"), [
    ("{_target_: house.wide, least: 5}",
     "rules.house: rule 'house.wide' cannot be imported (AttributeError: module 'house' has no attribute 'wide')"),
    ("{_target_: house.wide_enough, leest: 5}", "rules.house.leest: rule 'house' has no option 'leest'; did you mean 'least'?"),
])
def test_a_house_rule_that_is_none_is_told_before_the_run(mine, monkeypatch, setting, message):
    mine.write("house.py", RULE)
    monkeypatch.setattr("ddplint.cli._record", None)
    monkeypatch.delitem(sys.modules, "house", raising=False)
    ended = mine.ddplint("+model=mine", f"+rules.house={setting}")
    assert (ended.status, ended.err) == (2, f"ddplint: error: {message}\n")


def test_recorded_evidence_gives_the_same_report_without_torch(mine):
    status, report = lint(mine, "+model=mine", "report.evidence=run.json")
    assert lint(mine, "evidence=run.json") == (status, report)
    code = "import sys, ddplint; s = ddplint.main(['evidence=run.json']); assert 'torch' not in sys.modules; sys.exit(s)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=mine.folder, env=mine.environment(),
                           capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.skipif(importlib.util.find_spec("hydra_plugins.hydra_joblib_launcher") is None
                    if importlib.util.find_spec("hydra_plugins") else True, reason="needs the extra [joblib]")
def test_a_sweep_in_other_processes_gives_the_same_report(mine):
    argv = ["-m", "+model=mine", "run.seed=1,2", "report.json=-", "report.terminal=false"]
    here = mine.process(*argv)
    there = mine.process(*argv, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert (there.status, there.err) == (1, "")
    assert there.out == here.out
    assert mine.files() == ["configs", "configs/model", "configs/model/mine.yaml", "net.py"]


def test_the_jobs_of_a_sweep_share_ranks(mine):
    """The user's modules are imported once a rank, and anew where the world is another."""
    module = mine.folder / "net.py"
    mine.write("net.py", module.read_text() + "\n\nopen(__file__ + '.imports', 'a').write('x')\n")
    for sweep, imports in (("run.seed=1,2,3", 2 + 1), ("run.world_size=1,2", 1 + 1 + 2 + 1)):     # one for the causes
        assert mine.ddplint("-m", "+model=mine", sweep).status == 1
        assert len(Path(f"{module}.imports").read_text()) == imports
        Path(f"{module}.imports").unlink()


def test_a_sweep_over_ranks_judges_each_job_by_its_own(mine):
    mine.write("configs/model/house.yaml", MODEL + "checklist: {a-uses-all: {rule: unused-parameter, scenarios: [a]}}\n")
    argv = ["-m", "+model=house", "run.world_size=1,2"]
    status, report = lint(mine, *argv)
    item = next(item for item in report["items"] if item["id"] == "a-uses-all")
    assert (status, item["verdict"], item["examined"]) == (1, "fail", 8)
    assert [(s["name"], s["spec"]) for s in report["scenarios"]] == [("a", {}), ("a#2", {"world_size": 2})]
    assert {len(shares) for cells in report["usage"].values() for shares in cells.values()} == {1, 2}
    unused = [(f["message"], f["scenarios"]) for f in report["findings"] if f["rule"] == "unused-parameter"]
    assert unused == [("idle (2 parameters, 16 elements): no gradient", ["a"]),
                      ("idle (2 parameters, 16 elements): no gradient on any of 2 ranks", ["a#2"])]
    assert "'a#2' ran with run.world_size=2" in report["notes"]
    assert "in 2 scenarios x 1 to 2 ranks x 3 steps" in mine.ddplint(*argv).out


def test_a_spec_that_only_a_rank_can_refuse(mine):
    ended = mine.ddplint("+model=mine", "ddp.find_unused_paramters=true")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == ("ddplint: error: ddp: DistributedDataParallel has no keyword 'find_unused_paramters'; "
                         "did you mean 'find_unused_parameters'?\n")


def test_ctrl_c_reports_what_was_seen_and_ends_with_130(mine):
    """The second scenario hangs; the report is about the first."""
    mine.write("configs/model/slow.yaml", MODEL + "  b: {batch: {_target_: wait.forever}}\n")
    mine.write("wait.py", "import time\ndef forever():\n    open('waits', 'w').close()\n    time.sleep(600)\n")
    os.mkfifo(mine.folder / "waits")
    waits = os.open(mine.folder / "waits", os.O_RDONLY | os.O_NONBLOCK)
    command = [sys.executable, "-m", "ddplint", "+model=slow", "run.timeout=300", "report.json=out.json"]
    process = subprocess.Popen(command, cwd=mine.folder, env=mine.environment(), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert select.select([waits], [], [], 60)[0] == [waits]
    os.close(waits)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    report = json.loads((mine.folder / "out.json").read_text())
    assert told(report) == [("unused-parameter", ["idle"], ["a"])]
    for left in _alive_in_session(process.pid):
        assert _ends(left, within=5)


def _ends(pid: int, within: float) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = select.select([descriptor], [], [], within)[0] == [descriptor]
    os.close(descriptor)
    return ended


def _alive_in_session(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its = entry.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its) == session and state != "Z":
            found.append(int(entry.parent.name))
    return found


def test_a_hang_says_who_left_whom_first_of_all(mine):
    """That it ends in time: test_faults. What rank 1 lacks says nothing about the flag."""
    mine.write("configs/model/hangs.yaml", MODEL + "step: {_target_: net.hang}\n")
    _, report = lint(mine, "+model=hangs", "run.timeout=8", "ddp.find_unused_parameters=true")
    ddp, first = report["scenarios"][0]["ddp"], report["findings"][0]
    assert (ddp["outcome"], ddp["ranks"], ddp["message"]) == ("hang", [0], "waits in backward for the other ranks")
    assert [f["rule"] for f in report["findings"]] == ["collective-mismatch", "unused-parameter"]
    assert first["message"] == "run: rank 1 left the others in step 0: rank 0 entered backward, rank 1 never did"
    assert (first["cause"]["text"], first["cause"]["source"]) == (
        "backward() is not called: `dist.get_rank() == 0` does not hold", "if dist.get_rank() == 0:")
    assert "find_unused_parameters" not in report["settings"]


def test_a_torchrun_launch_is_joined_and_rank_0_alone_reports(mine):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "ddplint"]
    ended = subprocess.run([*command, "+model=mine", "run.world_size=7"], cwd=mine.folder, env=mine.environment(),
                           capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert ended.stdout.count("FAIL net.Net: 1 error in 1 scenario x 2 ranks x 3 steps") == 1
