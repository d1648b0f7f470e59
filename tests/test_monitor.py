"""The monitor in real training loops: what it tells, what it writes, and what it leaves alone."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.errors import EvidenceError
from ddplint.evidence import Evidence, Model, Parameter, RankSeen, ScenarioSeen, StepSeen
from ddplint.evidence_file import from_json, to_json
from ddplint.monitor import reading
from ddplint.monitor.reading import Reading
from ddplint.monitor.sinks import Scalars
from ddplint.monitor.window import Sampled, Window
from tests.excerpts import assert_shown

HERE = Path(__file__).parent / "monitored"
SEG = ["seg_head.0.weight", "seg_head.0.bias", "seg_head.2.weight", "seg_head.2.bias"]


def launch(script, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1",
               "--master-port=0", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", HERE / script, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)})


@pytest.mark.slow
def test_a_plain_loop_is_told_its_faults_and_nothing_else(project):
    ended = launch("loop.py", str(project.folder), "healthy", "dropped-under-the-flag", "nan", "drift", "at-the-last")
    told = json.loads(ended.stdout.splitlines()[-1])
    # Steps 0, 1, 2 and 4 are sampled, one collective each; every=100 samples three, and the last without a collective.
    assert {fault: count for fault, (count, _) in told.items()} == {
        "healthy": 4, "dropped-under-the-flag": 4, "nan": 4, "drift": 4, "at-the-last": 3}
    assert told["healthy"][1] == []
    assert [(f[0], f[2]) for f in told["dropped-under-the-flag"][1]] == [("dropped-loss-term", SEG)]
    (nan,), (drift,), (last,) = (told[fault][1] for fault in ("nan", "drift", "at-the-last"))
    assert nan[0] == "nonfinite-loss" and nan[3:5] == [[1], [4]]
    assert drift[0] == "ranks-diverge" and drift[2] == ["cls_head.weight"] and drift[4] == [4]
    assert last[:5] == ["varying-usage", "seg_head (4 parameters, 4,964 elements): no gradient in step 5, but in others of 4 steps",
                        SEG, [0, 1], [5]]
    assert_shown(__file__, ended.stderr)
    clean = project.ddplint("evidence=healthy.jsonl")
    assert clean.status == 0 and clean.out.startswith("PASS MultiTaskNet: no findings in 1 scenario x 2 ranks x 5 steps")
    judged = project.ddplint("evidence=drift.jsonl")
    assert judged.status == 1 and "error [ranks-diverge] cls_head.weight: parameters differ between the ranks from step 4 on" in judged.out


@pytest.mark.slow
def test_a_gradient_that_one_rank_lacks_at_the_last_step_is_told_though_ddp_only_hangs_up(project):
    ended = launch("loop.py", str(project.folder), "on-one-rank-at-the-last")
    lines = [line for line in ended.stderr.splitlines() if "error [" in line]
    assert len(lines) == 1
    assert "[varying-usage] seg_head (4 parameters, 4,964 elements): no gradient in step 5, but in others of 4 steps" in lines[0]
    assert "(scenario training; rank 1; step 5)" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "package"), [("lightning", "lightning"), ("hugging-face", "accelerate")])
def test_the_adapters_watch_the_wrapper_that_the_trainer_made(framework, package):
    pytest.importorskip(package, reason=f"needs {package}")
    ended = launch("frameworks.py", framework)
    told = [line for line in ended.stdout.splitlines() if line.startswith("TOLD ")]
    assert told, ended.stderr[-3000:]
    last_step, findings = json.loads(told[0][5:])
    assert last_step == 3
    assert ["unused-parameter", "net.seg_head", "net.seg_head (4 parameters, 4,964 elements): no gradient on any of 2 ranks"] in findings


# ---------------------------------------------------------------------- the parts


def test_a_reading_survives_its_vector():
    seen = Reading(7, "1.0", "???", [0.5, 0.0, 0.0], [1.0, 2.0, 3.0], 0.25, [1.5, None])
    back = reading.from_vector(seen.vector(), 3)
    assert (back.step, back.use, back.synced, back.sizes, back.signatures, back.total) == (7, "1.0", "???", seen.sizes,
                                                                                          seen.signatures, 0.25)
    assert back.terms[:3] == [1.5, None, None] and len(seen.vector()) == reading.length(3)
    assert reading.from_vector([0.0] * reading.length(3), 3) is None


def window(flag, *uses):
    """A window of one parameter and one rank, whose state at step i is ``uses[i]``."""
    spec = {"model": "net.Net", "world_size": 1, "ddp": {"find_unused_parameters": flag}}
    found = Window(Model("Net", [Parameter("head.weight", [2, 2], "float32", True, "head")]), spec, "training", 8)
    for step, use in enumerate(uses):
        found.add(Sampled(step, [Reading(step, use, "?", [0.1], [1.0])]))
    return found


def test_under_the_flag_a_missing_gradient_counts_only_after_three_samples():
    uses = [[[s.use for s in rank.steps] for rank in window(flag, *states).evidence().scenarios[0].ranks]
            for flag, states in ((True, "."), (True, ".."), (True, "..."), (False, "."))]
    assert uses == [[["?"]], [["?", "?"]], [[".", ".", "."]], [["."]]]


def lines_of(*uses):
    found = window(False)
    text = ""
    for step, use in enumerate(uses):
        found.add(Sampled(step, [Reading(step, use, "?", [0.1 * step], [1.0])]))
        text += to_json(found.line()) + "\n"
    return text


def test_json_lines_are_one_evidence():
    seen = from_json(lines_of("1", ".", "1"))
    (scenario,) = seen.scenarios
    assert [(s.step, s.use) for s in scenario.ranks[0].steps] == [(0, "1"), (1, "."), (2, "1")]
    assert scenario.ranks[0].size == [0.2] and seen.spec["steps"] == 3 and len(seen.models) == 1


def test_a_last_line_that_was_cut_short_is_said_and_any_other_is_refused():
    text = lines_of("1", "1", "1")
    cut = from_json(text[:-20])
    assert len(cut.scenarios[0].ranks[0].steps) == 2
    assert cut.scenarios[0].partly == {"steps": "the last line of the file was cut short"}
    first, _, rest = text.partition("\n")
    with pytest.raises(EvidenceError, match="run.jsonl, line 2 is not JSON"):
        from_json(first + "\n{\n" + rest, source="run.jsonl")


def test_indented_evidence_is_still_one_file():
    evidence = Evidence({"model": "m"}, scenarios=[ScenarioSeen("a", ranks=[RankSeen(0, steps=[StepSeen(0, use="1")])])])
    text = json.dumps(json.loads(to_json(evidence)), indent=1)
    assert from_json(text).scenarios[0].ranks[0].steps[0].use == "1"


class Writer:
    def __init__(self):
        self.seen = {}

    def add_scalar(self, name, value, step):
        self.seen[name, step] = value


def test_scalars_go_to_a_writer_that_the_loop_has():
    writer = Writer()
    sampled = Sampled(4, [Reading(4, ".10", "???", [0.0, 0.5, 0.0], [1.0] * 3, 0.1, [0.7])], ["cls"])
    Scalars(writer).write(sampled, 2)
    assert writer.seen == {("ddplint/without_gradient", 4): 1, ("ddplint/zero_gradient", 4): 1, ("ddplint/findings", 4): 2,
                           ("ddplint/nonfinite_gradient", 4): 0, ("ddplint/largest_gradient", 4): 0.5, ("ddplint/term/cls", 4): 0.7}


def test_without_tensorboard_a_folder_is_refused_in_a_sentence(monkeypatch, caplog, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with caplog.at_level(logging.WARNING, "ddplint.monitor"):
        Scalars(str(tmp_path)).write(Sampled(0, [None]), 0)
    assert caplog.messages == [f"tensorboard is not installed: no scalars are written to {tmp_path}"]
