"""Remedies that were tried under real DDP: what the findings say of them."""

import re

import pytest

from tests.excerpts import assert_shown, command

NET = '''
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Twice(nn.Module):
    """One layer in two reentrant checkpoints; ``spare`` adds a parameter that nothing reads."""

    def __init__(self, spare=False):
        super().__init__()
        self.first, self.layer = nn.Linear(4, 4), nn.Linear(4, 4)
        if spare:
            self.spare = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=True)
        return {"loss": x.square().mean()}
'''
MENDED = '''
import os

import torch
from torch import nn


class Heads(nn.Module):
    """Two heads; from the second step on ``late`` freezes one, ``shuffled`` registers them in another order on rank 1."""

    def __init__(self, late=False, shuffled=False):
        super().__init__()
        self.late, self.steps, self.body = late, 0, nn.Linear(4, 4)
        for name in "ba" if shuffled and os.environ["RANK"] == "1" else "ab":
            self.add_module(name, nn.Linear(4, 2 if shuffled and name == "b" else 4))

    def forward(self, x):
        self.steps += 1
        if self.late and self.steps > 1:
            self.b.requires_grad_(False)
        hidden = self.body(x)
        return {"a": self.a(hidden), "b": self.b(hidden)}


def square(output):
    return output.square().mean()


def only_a(terms):
    return terms["a"]
'''
HEADS = """
# @package _global_
model: {_target_: net.Heads}
loss: {terms: {a: {_target_: net.square, args: [output.a]}, b: {_target_: net.square, args: [output.b]}}}
scenario: {typical: {batch: {x: {shape: [2, 4]}}}}
"""
MODEL = """
# @package _global_
model: {_target_: net.Twice}
scenario: {typical: {batch: {x: {shape: [2, 4]}}}}
"""


def remedies(project, *overrides):
    """Rule -> what stands behind "tried" in its remedy."""
    ended = project.ddplint("run.try_remedies=true", "run.device=cpu", "run.steps=2", "run.causes=false", *overrides)
    rule, found = "", {}
    for line in ended.out.splitlines():
        rule = match[1] if (match := re.search(r"(?:error|warning|note) \[([\w-]+)\]", line)) else rule
        if line.startswith("    do: ") and "(tried " in line:
            found[rule] = line.split("(tried ", 1)[1]
    return found


@pytest.mark.slow
def test_freezing_and_the_flag_are_tried_for_what_never_gets_a_gradient(project):
    ended = project.ddplint(*command(__file__), "run.device=cpu")
    assert ended.status == 1 and ended.out.count("(tried ") == 1
    assert_shown(__file__, ended.out)


@pytest.mark.slow
def test_checkpoints_without_reentry_are_tried(project):
    project.write("net.py", NET)
    project.write("configs/model/twice.yaml", MODEL.lstrip())
    told = remedies(project, "+model=twice")
    assert told["checkpoint-conflict"].startswith("with use_reentrant=False: DDP ok; with static_graph=true: DDP ok; a step took ")


@pytest.mark.slow
def test_a_remedy_that_does_not_help_says_why(project):
    project.write("net.py", NET)
    project.write("configs/model/twice.yaml", MODEL.lstrip())
    told = remedies(project, "+model=twice", "+model.spare=true", "run.steps=3")
    assert any("with use_reentrant=False: DDP fails in 1 of 1 scenarios (first in 'typical': Expected to have finished reduction" in text
               for text in told.values())


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "rule", "words"), [
    ("+loss.total={_target_: net.only_a}", "dropped-loss-term", "with the dropped terms added to the total: DDP ok; "),
    ("+model.late=true", "changed-after-wrap", "with requires_grad changed before DDP is built: DDP ok)"),
    ("+model.shuffled=true", "parameter-mismatch", "with parameters registered in the order of their names: DDP ok)"),
])
def test_what_a_program_can_mend_by_itself_is_tried(project, fault, rule, words):
    project.write("net.py", MENDED)
    project.write("configs/model/heads.yaml", HEADS.lstrip())
    assert remedies(project, "+model=heads", fault, "run.steps=3")[rule].startswith(words)
