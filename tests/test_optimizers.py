"""Several optimizers in one object of the user's own."""

import json

import pytest
import torch

from ddplint.record.lightning import Optimizers


class Trainer:
    def __init__(self, model):
        self.weights, self.rest = torch.optim.SGD([model.weight], lr=0.1), [torch.optim.Adam([model.bias])]
        self.plan = torch.optim.lr_scheduler.ConstantLR(self.weights)
        self.first = self.weights


def test_what_an_object_holds_is_looked_at_once_each():
    trainer = Trainer(torch.nn.Linear(2, 2))
    assert Optimizers(trainer).members == [trainer.weights, trainer.rest[0]]


def test_an_object_without_one_holds_no_group():
    assert Optimizers(object()).param_groups == []


# ------------------------------------------------------------------ steps without the gradients of backward

LOOPS = '''
import json

import pytest
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)


def cleared(model, batch, optimizer):
    model(batch).square().mean().backward()
    optimizer.zero_grad()
    optimizer.step()


def stepped_before_backward(model, batch, optimizer):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    optimizer.step()
    loss.backward()


def dropped_by_hand(model, batch, optimizer):
    model(batch).square().mean().backward()
    for parameter in model.parameters():
        parameter.grad = None
    optimizer.step()


def cleared_after_the_step(model, batch, optimizer):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


def every_second_step(model, batch, optimizer):
    model(batch).square().mean().backward()
    model.count = getattr(model, "count", 0) + 1
    if model.count % 2 == 0:
        optimizer.step()
        optimizer.zero_grad()
'''


@pytest.mark.parametrize(("loop", "steps", "line"), [
    ("cleared", [0, 1, 2], "optimizer.zero_grad()"), ("stepped_before_backward", [1, 2], "optimizer.zero_grad()"),
    ("dropped_by_hand", [0, 1, 2], "optimizer.step()"), ("cleared_after_the_step", [], None), ("every_second_step", [], None),
])
@pytest.mark.parametrize("engine", ["local", "simulate"])
def test_gradients_that_are_gone_when_the_optimizer_steps(project, engine, loop, steps, line):
    project.write("loops.py", LOOPS)
    project.write("configs/model/mine.yaml", "# @package _global_\nmodel: {_target_: loops.Net}\n"
                  f"step: {{_target_: loops.{loop}}}\nscenario: {{a: {{batch: {{shape: [2, 4]}}}}}}\nrun: {{engine: {engine}}}\n")
    ended = project.ddplint("+model=mine", "report.json=-", "report.terminal=false")
    found = [(f["rule"], f["parameters"], f["steps"], f["cause"]["source"]) for f in json.loads(ended.out)["findings"]]
    assert found == ([("optimizer-coverage", ["layer.weight", "layer.bias"], steps, line)] if steps else [])
