"""The single-process reference, against real DDP: the factor of each way to get the gradient's size wrong."""

import pytest

NET = '''
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.drop, self.b = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 4)

    def forward(self, x):
        return self.b(self.drop(torch.relu(self.norm(self.a(x)))))


def batch(rank):
    generator = torch.Generator().manual_seed(rank)
    mask = torch.zeros(12)
    mask[:2 if rank else 10] = 1
    return {"x": torch.randn(12, 8, generator=generator), "y": torch.randint(4, (12,), generator=generator), "mask": mask,
            "weight": torch.ones(4)}


def ragged(rank):
    return {"x": torch.randn(12, 8 + rank), "y": torch.zeros(12, dtype=torch.long)}


def narrowed(model, batch):
    return model(batch["x"][:, :8])


def mean(output, batch):
    return cross_entropy(output, batch["y"], weight=batch.get("weight"))


def summed(output, batch):
    return cross_entropy(output, batch["y"], reduction="sum")


def masked(output, batch):
    losses = cross_entropy(output, batch["y"], reduction="none")
    return (losses * batch["mask"]).sum() * (1 / float(batch["mask"].sum()))


def over_all_ranks(output, batch):
    losses = cross_entropy(output, batch["y"], reduction="none")
    count = batch["mask"].sum()
    dist.all_reduce(count)
    return (losses * batch["mask"]).sum() * dist.get_world_size() / count


def divided_twice(model, batch, optimizer):
    optimizer.zero_grad()
    (mean(model(batch["x"]), batch) / dist.get_world_size()).backward()
    optimizer.step()


def added_by_hand(model, batch, optimizer):
    optimizer.zero_grad()
    mean(model(batch["x"]), batch).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()


def accumulated(model, batch, optimizer):
    optimizer.zero_grad()
    for i in range(3):
        part = {"x": batch["x"][4 * i:4 * i + 4], "y": batch["y"][4 * i:4 * i + 4]}
        with contextlib.nullcontext() if i == 2 else model.no_sync():
            mean(model(part["x"]), part).backward()
    optimizer.step()
'''
MODEL = """
# @package _global_
model: {{_target_: net.Net}}
{more}
scenario: {{typical: {{batch: {{_target_: net.batch}}}}}}
"""
SUM = "run: the reduced gradient is 0.5 times that of the global batch on one process, because the loss is a sum that DDP"


def lint(project, more, *overrides):
    more = more if "forward" in more else "forward: {x: batch.x}\n" + more
    project.write("net.py", NET)
    project.write("configs/model/net.yaml", MODEL.format(more=more).lstrip())
    ended = project.ddplint("+model=net", "run.reference=true", "run.steps=1", "run.device=cpu", *overrides)
    return [line.split("] ", 1)[1] for line in ended.out.splitlines() if " [global-batch-mismatch] " in line], ended


@pytest.mark.slow
@pytest.mark.parametrize(("more", "told"), [
    pytest.param("loss: {terms: {_target_: net.summed}}", SUM, id="a summed loss"),
    pytest.param("step: {_target_: net.divided_twice}", SUM, id="averaged twice"),
    pytest.param("step: {_target_: net.added_by_hand}",
                 "run: the reduced gradient is 2 times that of the global batch on one process, because the ranks' gradients are "
                 "added up (2 of them), not averaged", id="added by hand"),
    pytest.param("step: {_target_: net.accumulated}\nloss: {terms: {_target_: net.mean}}",
                 "run: the reduced gradient is 3 times that of the global batch on one process, because 3 backwards are added up "
                 "before the step", id="accumulated without scaling"),
])
def test_the_factor_is_told(project, more, told):
    findings, _ = lint(project, more)
    assert [finding[:len(told)] for finding in findings] == [told]


@pytest.mark.slow
def test_means_over_different_counts_point_elsewhere(project):
    findings, _ = lint(project, "loss: {terms: {_target_: net.masked}}")
    assert len(findings) == 1
    assert "the reduced gradient is not that of the global batch on one process: " in findings[0]


@pytest.mark.slow
@pytest.mark.parametrize(("more", "overrides"), [
    pytest.param("loss: {terms: {_target_: net.mean}}", (), id="a mean, with dropout and BatchNorm"),
    pytest.param("loss: {terms: {_target_: net.mean}}", ("+scenario.typical.accumulate=2",), id="accumulated by ddplint"),
    pytest.param("loss: {terms: {_target_: net.over_all_ranks}}", (), id="the count of all ranks"),
])
def test_what_is_right_is_left_alone(project, more, overrides):
    findings, ended = lint(project, more, *overrides)
    assert findings == []
    assert "no single-process reference" not in ended.out


@pytest.mark.slow
def test_batches_that_do_not_join_are_not_checked(project):
    _, ended = lint(project, "loss: {terms: {_target_: net.mean}}\nforward: {_target_: net.narrowed}", "scenario.typical.batch._target_=net.ragged")
    assert ("Each rank's mean is over as many elements: batch.x has shapes [12, 8] and [12, 9], which do not make one global batch"
            in ended.out)
