"""Which device and backend the ranks get, what a GPU's errors are taken for, and what a report says of GPUs. No GPU is needed."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ddplint.check import check
from ddplint.errors import SpecError
from ddplint.evidence import Device, Evidence, Failure, Outcome, Place, RankSeen, ScenarioSeen
from ddplint.evidence_file import from_json, to_json
from ddplint.record.gang import Gang
from ddplint.record.group import Group, agree, own_gpu
from ddplint.record.member import Transcript
from ddplint.record.said import told_failure
from ddplint.record.source import first_error, is_ours
from ddplint.render import render
from ddplint.spec import Judgement, Run, Spec
from ddplint.views.failures import breaks_device, classify
from tests.excerpts import assert_shown

ASSERT = "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call"
MEMORY = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 14.32 GiB is free."


# ---------------------------------------------------------------------- who gets which

@pytest.mark.parametrize(("gpus", "spec", "expected"), [
    (["", ""], {}, ("cpu", "gloo")),
    (["cuda:0", "cuda:1"], {}, ("cuda", "nccl")),
    (["cuda:0", "cuda:0"], {}, ("cuda", "gloo")),
    (["cuda:0", "cuda:1", "cuda:0"], {}, ("cuda", "gloo")),
    (["cuda:0", ""], {}, ("cpu", "gloo")),                                          # hosts of a launch that are not alike
    (["cuda:0", "cuda:1"], {"backend": "gloo"}, ("cuda", "gloo")),
    (["cuda:0"], {"device": "cuda"}, ("cuda", "nccl")),
])
def test_the_ranks_agree_on_a_device_and_a_backend(gpus, spec, expected):
    assert agree(Run(**spec), gpus) == expected


@pytest.mark.parametrize(("gpus", "spec", "words"), [
    (["", ""], {"device": "cuda"}, "run.device: found no GPU; set run.device=cpu, or auto"),
    (["cuda:0", ""], {"device": "cuda"}, "run.device: found no GPU on some hosts; set run.device=cpu, or auto"),
    (["", ""], {"backend": "nccl"}, "run.backend: nccl needs a GPU for each of 2 ranks, found 0; set run.backend=gloo, or lower run.world_size"),
    (["cuda:0"] * 3, {"backend": "nccl"}, "run.backend: nccl needs a GPU for each of 3 ranks, found 1; set run.backend=gloo, or lower run.world_size"),
])
def test_what_is_asked_for_and_not_there_is_told(gpus, spec, words):
    with pytest.raises(SpecError) as caught:
        agree(Run(**spec), gpus)
    assert str(caught.value) == words


def test_gpus_are_counted_round(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(own_gpu(Run(), rank)) for rank in range(4)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    assert own_gpu(Run(device="cpu"), 0) is None


def test_a_gpu_that_is_not_there_ends_the_lint_with_a_sentence(project):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    ended = project.ddplint("+model=multitask", "run.device=cuda")
    assert (ended.status, ended.err) == (2, "ddplint: error: run.device: found no GPU; set run.device=cpu, or auto\n")


# ---------------------------------------------------------------------- errors of a GPU

@pytest.mark.parametrize(("message", "name", "broken"), [
    (MEMORY, "device-memory", False),
    ("CUDA error: out of memory", "device-memory", False),
    (ASSERT, "device-assert", True),
    ("CUDA error: an illegal memory access was encountered", "device-access", True),
    ("CUDA error: misaligned address", "device-access", True),
    ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`", "device-error", True),
    ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE) ran for 60 milliseconds "
     "before timing out.", "collective", False),
])
@pytest.mark.parametrize("kind", ["raised", "killed"])
def test_an_error_of_a_gpu_is_taken_for_what_it_is(kind, message, name, broken):
    failure = Failure(kind, "backward", 0, "RuntimeError", message)
    assert (classify(failure), breaks_device(failure)) == (name, broken)


@pytest.mark.parametrize("message", [MEMORY, ASSERT])
def test_ranks_are_not_used_again_after_an_error_of_a_gpu(message):
    spec = Spec(model={}, run=Run(timeout=20.0, device="cpu"), folder=str(Path(__file__).parent / "faulty"))
    with Gang(spec) as gang:
        pids = [dict(t.messages)["pid"] for t in gang.run("device_jobs:raise_this", message="ValueError: mine")]
        assert [dict(t.messages)["pid"] for t in gang.run("device_jobs:raise_this", message=message)] == pids
        assert set(pids) & {dict(t.messages)["pid"] for t in gang.run("device_jobs:raise_this", message=message)} == set()


def test_the_first_error_of_a_gpu_counts_and_is_never_ddplints_own():
    def fail():
        try:
            raise torch.AcceleratorError(f"{ASSERT}: first")
        finally:
            raise torch.AcceleratorError(f"{ASSERT}: again")
    with pytest.raises(RuntimeError) as caught:
        fail()
    assert str(first_error(caught.value)) == f"{ASSERT}: first" and not is_ours(caught.value)
    caught.value.__context__.__context__ = KeyError("long since dealt with")
    assert str(first_error(caught.value)) == f"{ASSERT}: first"


def test_of_thousands_of_threads_whose_assertion_fails_one_is_told():
    line = ("/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [%d,0,0] "
            "Assertion `t >= 0 && t < n_classes` failed.\n")
    failure = Failure("raised", "terms", 0, "AcceleratorError", ASSERT)
    told = told_failure(Transcript(0, failure=failure, output="".join(line % thread for thread in range(32))))
    assert told.printed == ["nll_loss_forward_reduce_cuda_kernel_2d: Assertion `t >= 0 && t < n_classes` failed"]


def test_ranks_that_run_out_of_memory_say_so_alike():
    """What torch 2.13 adds differs from rank to rank and from run to run."""
    said = [told_failure(Transcript(rank, failure=Failure("raised", "forward", 0, "OutOfMemoryError", (
        f"CUDA out of memory. Tried to allocate 20.00 GiB. GPU {rank} has a total capacity of 15.77 GiB of which {rank}.32 GiB is free. "
        f"Process {rank + 77} has 1.45 GiB memory in use. Of the allocated memory 1.02 GiB is allocated by PyTorch, and 9.5{rank} MiB is reserved "
        "by PyTorch but unallocated.")))).message for rank in (0, 1)]
    assert said == ["CUDA out of memory. Tried to allocate 20.00 GiB. The GPU has 15.77 GiB."] * 2


# ---------------------------------------------------------------------- the report

def report(*devices: Device, failure: Failure | None = None):
    ranks = [RankSeen(rank, device=device, failure=failure) for rank, device in enumerate(devices)]
    seen = Evidence({"model": "net.Net", "world_size": len(ranks)}, scenarios=[
        ScenarioSeen("typical", ranks=ranks, outcome=Outcome("error" if failure else "ok"))])
    return check(from_json(to_json(seen)), Judgement())


def test_gloo_in_place_of_nccl_is_said():
    told = report(Device("cuda:0", "gloo", 3 << 20), Device("cuda:0", "gloo", 2 << 20))
    assert told.notes == ["gloo over CUDA tensors, 2 ranks on 1 GPU: NCCL, which needs a GPU for each rank, was not run"]
    assert report(Device("cuda:0", "nccl", 0), Device("cuda:1", "nccl", 0)).notes == []


def test_the_peak_of_memory_is_in_the_json_and_in_verbose_reports():
    told = report(Device("cuda:0", "nccl", 3 << 20), Device("cuda:1", "nccl", 1 << 30))
    assert json.loads(render(told, "json"))["scenarios"][0]["devices"] == {
        "0": {"name": "cuda:0", "backend": "nccl", "memory": 3 << 20}, "1": {"name": "cuda:1", "backend": "nccl", "memory": 1 << 30}}
    line = "typical: 3.0 MiB on cuda:0 (rank 0), 1,024.0 MiB on cuda:1 (rank 1)"
    assert f"memory: {line}\n" in render(told, "plain", verbose=True)
    assert f"Device memory at its peak\n  {line}\n" in render(told, "terminal", verbose=True)
    assert "1,024.0 MiB" not in render(told, "plain")


def test_an_error_of_a_gpu_reads_as_the_readme_shows():
    printed = ["nll_loss_forward_reduce_cuda_kernel_2d: Assertion `t >= 0 && t < n_classes` failed"]
    failure = Failure("raised", "terms", 0, "AcceleratorError", ASSERT, [Place("train.py", 12)], printed=printed)
    assert_shown(__file__, render(report(Device("cuda:0", "nccl", 0), Device("cuda:1", "nccl", 0), failure=failure), "plain"))


# ---------------------------------------------------------------------- whole lints, of a program that says what a GPU says

NET = '''
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        if (x < 0).all():
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return {"loss": self.head(x).square().mean()}
'''
SPEC = """# @package _global_
model: {_target_: net.Net}
scenario:
  good: {batch: {x: {shape: [2, 4], value: 1.0}}}
  bad: {batch: {x: {shape: [2, 4], value: -1.0}}}
  last: {batch: {x: {shape: [2, 4], value: 2.0}}}
"""
ARGV = ("+model=mine", "run.causes=false", "run.device=cpu", "report.json=-", "report.terminal=false")


@pytest.fixture
def mine(project):
    project.write("net.py", NET)
    project.write("configs/model/mine.yaml", SPEC)
    return project


def ends(out: str) -> tuple[dict[str, str], list[str]]:
    report = json.loads(out)
    return ({scenario["name"]: scenario["ddp"]["outcome"] for scenario in report["scenarios"]},
            [finding["message"] for finding in report["findings"] if finding["rule"] == "rank-failure"])


SAID = "run: ranks 0 and 1 raised RuntimeError in forward, step 0: CUDA error: an illegal memory access was encountered"


def test_an_error_of_a_gpu_costs_its_scenario_alone(mine):
    assert ends(mine.ddplint(*ARGV).out) == ({"good": "ok", "bad": "error", "last": "ok"}, [SAID])


@pytest.mark.slow
def test_in_a_launch_the_ranks_cannot_go_on_after_one(mine):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "ddplint", *ARGV]
    ended = subprocess.run(command, cwd=mine.folder, env=mine.environment(), text=True, capture_output=True, timeout=200, check=False)
    assert ends(ended.stdout) == ({"good": "ok", "bad": "error", "last": "crashed"}, [
        SAID, "run: ranks 0 and 1 did no more: an error of the scenario before leaves this process no use of its GPU"])


@pytest.mark.parametrize(("stale", "done"), [(False, []), (True, ["abort", "init"])])
def test_nccls_group_is_kept_after_a_clean_job_and_aborted_after_another(monkeypatch, stale, done):
    """An open collective of NCCL's would let the destruction wait for ever."""
    called = []
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist.distributed_c10d, "_abort_process_group", lambda: called.append("abort"))
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: called.append("init"))
    group = Group(Run(), 0, [""], None, dist.HashStore(), timedelta(seconds=1))
    group.backend, group.stale = "nccl", stale
    group.renew()
    assert (called, group.stale) == (done, False)
