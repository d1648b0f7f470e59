"""Real GPUs: NCCL, ranks that share a GPU, peaks of memory, CUDA's errors, autocast, channels_last, pinned loaders."""

import json

import pytest
import torch

NET = '''
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    """A small classifier of images; ``fault`` says what goes wrong where the batch is negative."""

    def __init__(self, fault="", channels_last=False):
        super().__init__()
        self.fault = fault
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 4)
        if channels_last:
            self.to(memory_format=torch.channels_last)

    def forward(self, x):
        if self.fault and bool((x < 0).all()):
            FAULTS[self.fault](x)
        return self.head(self.norm(self.conv(x)).relu().mean((2, 3)))


def out_of_memory(x):
    torch.empty(1 << 50, dtype=torch.uint8, device=x.device)


def out_of_range(x):
    nn.functional.nll_loss(torch.zeros(2, 3, device=x.device), torch.tensor([7, 7], device=x.device))
    torch.cuda.synchronize()


def illegal(x):
    wild = torch.cuda.jiterator._create_jit_fn("template <typename T> T wild(T x) { return x + *(volatile T*)0x10; }")
    wild(x)
    torch.cuda.synchronize()


FAULTS = {"memory": out_of_memory, "assert": out_of_range, "access": illegal}


def pinned(rank):
    data = [{"x": torch.rand(3, 8, 8) + 0.1, "y": i % 4} for i in range(32)]
    return DataLoader(data, batch_size=4, pin_memory=True, num_workers=2)
'''
SPEC = """
# @package _global_
model: {_target_: net.Net}
loss: {terms: {ce: {_target_: torch.nn.CrossEntropyLoss, args: [output, batch.y]}}}
scenario:
  good: {batch: {x: {shape: [4, 3, 8, 8], uniform: [0.1, 1]}, y: {shape: [4], integers: [0, 4]}}}
"""
BAD = "+scenario.bad={batch: {x: {shape: [4, 3, 8, 8], value: -1.0}, y: {shape: [4], integers: [0, 4]}}}"
LAST = "+scenario.last={batch: {x: {shape: [4, 3, 8, 8], uniform: [0.1, 1]}, y: {shape: [4], integers: [0, 4]}}}"


@pytest.fixture
def lint(project):
    """(exit status, JSON report) of the model above."""
    project.write("net.py", NET)
    project.write("configs/model/mine.yaml", SPEC.lstrip())

    def run(*argv: str) -> tuple[int, dict]:
        ended = project.ddplint("+model=mine", *argv, "report.json=-", "report.terminal=false")
        return ended.status, json.loads(ended.out)
    return run


def devices(report: dict, scenario: int = 0) -> list[tuple[str, str]]:
    return [(device["name"], device["backend"]) for device in report["scenarios"][scenario]["devices"].values()]


def test_a_rank_per_gpu_runs_nccl(lint):
    count = torch.cuda.device_count()
    status, report = lint(f"run.world_size={count}")
    assert (status, report["findings"], report["notes"]) == (0, [], [])
    assert devices(report) == [(f"cuda:{rank}", "nccl") for rank in range(count)]
    assert all(device["memory"] > 0 for device in report["scenarios"][0]["devices"].values())


def test_more_ranks_than_gpus_run_gloo_over_cuda_tensors(lint):
    count = torch.cuda.device_count()
    status, report = lint(f"run.world_size={2 * count}")
    assert (status, report["findings"]) == (0, [])
    assert devices(report) == [(f"cuda:{rank % count}", "gloo") for rank in range(2 * count)]
    gpus = "1 GPU" if count == 1 else f"{count} GPUs"
    assert report["notes"] == [f"gloo over CUDA tensors, {2 * count} ranks on {gpus}: NCCL, which needs a GPU for each rank, was not run"]


def test_the_cpu_is_left_to_who_wants_it(lint):
    status, report = lint("run.device=cpu")
    assert (status, devices(report)) == (0, [])


@pytest.mark.parametrize(("fault", "words", "remedy"), [
    ("memory", "CUDA out of memory", "make the rank's batch or sequence smaller"),
    ("assert", "CUDA error: device-side assert triggered", "look for an index or a label that is out of range"),
    ("access", "CUDA error: an illegal memory access was encountered", "a kernel reads or writes where it may not"),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_an_error_of_a_gpu_is_told_and_costs_its_scenario_alone(lint, fault, words, remedy, ranks):
    status, report = lint(f"++model.fault={fault}", BAD, LAST, f"run.world_size={ranks}", "run.causes=false")
    assert status == 1
    assert {s["name"]: s["ddp"]["outcome"] for s in report["scenarios"]} == {"good": "ok", "bad": "error", "last": "ok"}
    [finding] = [f for f in report["findings"] if f["rule"] == "rank-failure"]
    assert words in finding["message"] and finding["remedy"].startswith(remedy)
    assert finding["cause"]["file"] == "net.py"


def test_the_assertion_of_the_kernel_is_told(lint):
    _, report = lint("++model.fault=assert", BAD, "run.world_size=1", "run.causes=false")
    [finding] = [f for f in report["findings"] if f["rule"] == "rank-failure"]
    assert any("Assertion" in also and "n_classes" in also for also in finding["cause"]["also"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_healthy_model_is_clean_under_autocast(lint, dtype):
    status, report = lint(f"+scenario.good.autocast={dtype}", "run.world_size=1")
    assert (status, report["findings"]) == (0, [])


def test_a_healthy_model_is_clean_in_channels_last(lint):
    status, report = lint("++model.channels_last=true", "run.world_size=1")
    assert (status, report["findings"]) == (0, [])


def test_a_pinned_loader_is_run(lint):
    status, report = lint("+scenario.loaded={loader: {_target_: net.pinned}}", "run.world_size=1")
    assert (status, report["findings"]) == (0, [])
    assert report["usage"]["head.weight"] == {"good": [1], "loaded": [1]}


def test_causes_are_found_on_a_gpu(project):
    ended = project.ddplint("+model=multitask", "run.world_size=1", "report.json=-", "report.terminal=false")
    found = [(f["rule"], f["cause"]["kind"]) for f in json.loads(ended.out)["findings"]]
    assert (ended.status, found) == (1, [("unused-parameter", "output-not-in-loss")])


@pytest.mark.gpus(2)
def test_a_rank_that_skips_a_collective_of_nccls_is_named(lint, project):
    project.write("net.py", NET + '''

class Skips(Net):
    def forward(self, x):
        import torch.distributed as dist
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(1, device=x.device))
            torch.cuda.synchronize()
        return super().forward(x)
''')
    status, report = lint("model._target_=net.Skips", "run.world_size=2", "run.timeout=15")
    assert status == 1
    assert report["scenarios"][0]["ddp"]["outcome"] == "hang"
    assert [f["rule"] for f in report["findings"]] == ["collective-mismatch"]
