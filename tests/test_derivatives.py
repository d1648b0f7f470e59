"""gradient-mismatch on two small programs: a backward that is half of the slope, and the right one."""

import pytest

from tests.conftest import Project

MODEL = '''
import torch
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


class Net(nn.Module):
    def __init__(self, right):
        super().__init__()
        self.inner, self.drop, self.outer, self.right = nn.Linear(8, 16), nn.Dropout(0.2), nn.Linear(16, 3), right

    def forward(self, x):
        h = self.drop(self.inner(x))
        return self.outer(h ** 2 if self.right else Square.apply(h))
'''
CONFIG = '''# @package _global_
model: {_target_: squared.Net, right: false}
forward: {x: batch.x}
loss: {terms: {ce: {_target_: torch.nn.functional.cross_entropy, args: [output, batch.y]}}}
scenario: {typical: {batch: {x: {shape: [8, 8]}, y: {shape: [8], integers: [0, 3]}}}}
'''


@pytest.mark.parametrize(("right", "status", "found"), [("true", 0, False), ("false", 1, True)])
def test_the_slope_of_another_function(project: Project, right: str, status: int, found: bool) -> None:
    project.write("squared.py", MODEL)
    project.write("configs/model/squared.yaml", CONFIG)
    ended = project.ddplint("+model=squared", f"model.right={right}", "rules.gradient-mismatch=error", "run.device=cpu")
    assert ended.status == status
    assert ("[gradient-mismatch] inner" in ended.out) is found
    assert "[gradient-mismatch] outer" not in ended.out
