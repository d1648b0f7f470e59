"""Which mode the parts of a model are in when a step begins."""

import torch
from torch import nn

from ddplint.record.program import Program
from ddplint.spec import Scenario, Spec


class Net(nn.Module):
    """A frozen backbone that its factory has put into eval mode, and a head whose norm is in eval mode, yet trains."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(2, 2), nn.Dropout()).eval().requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())


def modes(program: Program) -> dict[str, bool]:
    return {name: module.training for name, module in program.model.named_modules() if name.count(".") == 1}


def program(mode: str, factory: str) -> Program:
    scenarios = {"a": Scenario("a", batch={"x": {"shape": [2]}}, mode=mode), "b": Scenario("b", sequence=("a", "c")),
                 "c": Scenario("c", batch={"x": {"shape": [2]}}, mode="eval")}
    found = Program(Spec(model={"_target_": f"tests.test_modes.{factory}"}, scenarios=scenarios), "b", 0, 1, torch.device("cpu"))
    found.resolve()
    found.build()
    return found


def evaluating() -> Net:
    return Net().eval()


TRAINING = {"backbone.0": False, "backbone.1": False, "head.0": True, "head.1": True}
ALL, NONE = dict.fromkeys(TRAINING, True), dict.fromkeys(TRAINING, False)


def test_what_is_frozen_and_in_eval_mode_stays_so():
    found = program("train", "Net")
    found.prepare(0)
    assert modes(found) == TRAINING


def test_a_model_that_comes_in_eval_mode_trains_as_a_whole():
    """``from_pretrained`` gives it so."""
    found = program("train", "evaluating")
    found.prepare(0)
    assert modes(found) == ALL


def test_a_step_keeps_the_mode_that_the_one_before_has_left_until_the_scenario_changes_it():
    found = program("train", "Net")
    found.prepare(0)
    found.model.eval()
    found.prepare(2)
    assert modes(found) == NONE
    found.model.train()
    found.prepare(1)
    assert modes(found) == NONE
    found.model.train()
    found.prepare(3)
    assert modes(found) == ALL


LOOP = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, x):
        return self.layers(x)


def step(model, batch, optimizer):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for _ in range(2):
            model(batch)
"""


def test_buffers_are_compared_where_ddp_has_broadcast_them(project):
    """After a forward without gradients the next one does not broadcast (DDP's require_forward_param_sync); the one after does."""
    project.write("loop.py", LOOP)
    project.write("configs/model/mine.yaml", "# @package _global_\nmodel: {_target_: loop.Net}\nstep: {_target_: loop.step}\n"
                                             "scenario: {a: {batch: {shape: [8, 4]}}}\n")
    clean = project.ddplint("+model=mine")
    assert (clean.status, "ranks-diverge" in clean.out) == (0, False)
    own = project.ddplint("+model=mine", "ddp.broadcast_buffers=false")
    assert "note [ranks-diverge] layers.1: buffers differ between the ranks from step 0 on" in own.out
