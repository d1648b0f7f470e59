"""``+scenario=explore``: the ways through a model that its typical scenario does not show."""

import re

import pytest

from tests.excerpts import assert_shown, command

ROUTED = """
# @package _global_
model: {_target_: ddplint.examples.routed.RoutedNet}
loss: {terms: {error: {_target_: torch.nn.MSELoss, args: [output, batch.y]}}}
scenario: {typical: {batch: {x: {shape: [64, 16]}, domain: {shape: [64], integers: [0, 3]}, y: {shape: [64]}}}}
"""
DETECTOR = """
# @package _global_
model: {_target_: ddplint.examples.detector.Detector}
loss: {terms: output}
scenario: {typical: {batch: {image: {shape: [2, 3, 16, 16]}, boxes: {shape: [2, 5, 4], uniform: [0, 1]}}}}
"""
LATE = """
# @package _global_
model: {_target_: net.Net}
loss: {terms: output.loss}
scenario: {typical: {batch: {x: {shape: [4, 4]}}}}
"""
NET = '''
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.epoch, self.a, self.b = 0, nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return {"loss": (self.b(x) if self.epoch > 10 else self.a(x)).square().mean()}
'''


def explored(project, *argv):
    """The lines of YAML that are told, by the name of their scenario, and all that was printed."""
    ended = project.ddplint(*argv, "run.causes=false", "run.device=cpu", "run.steps=2")
    found = re.findall(r"remark: explore: .*configs/scenario: (\w+): (\{.*\})", ended.out)
    return dict(found), ended


@pytest.mark.slow
def test_the_other_branch_is_found_from_one_scenario(project):
    found, ended = explored(project, *command(__file__))
    assert_shown(__file__, ended.out)
    named = [yaml for name, yaml in found.items() if "minus" in name]
    assert any('"ddplint.generators.extreme_values", "base": "positive", "keys": "x", "scale": -1.0' in yaml for yaml in named)
    assert "dark" in ended.out


@pytest.mark.slow
def test_a_found_scenario_can_be_pasted(project):
    found, _ = explored(project, "+model=dynamic", "scenario=[positive,explore]", "run.explore.budget=30")
    name = next(name for name in found if "minus" in name)
    project.write(f"configs/scenario/{name}.yaml", f"{name}: {found[name]}\n")
    pasted = project.ddplint("+model=dynamic", f"scenario=[positive,{name}]", "run.device=cpu")
    assert f"bright.* (2): always in positive; never in {name}" in pasted.out


@pytest.mark.slow
def test_the_idle_expert_is_found(project):
    project.write("configs/model/experts.yaml", ROUTED.lstrip())
    found, ended = explored(project, "+model=experts", "+scenario=explore", "run.explore.budget=30")
    assert "typical_one_class_only_domain_3" in found
    assert "experts.3" in ended.out


@pytest.mark.slow
def test_the_batch_without_boxes_is_found(project):
    project.write("configs/model/boxes.yaml", DETECTOR.lstrip())
    found, ended = explored(project, "+model=boxes", "+scenario=explore", "run.explore.budget=40")
    assert any("empty_targets_boxes_1" in name for name in found)
    assert re.search(r"error \[[\w-]+\] box_head", ended.out)


@pytest.mark.slow
def test_what_a_later_epoch_switches_on_is_found_and_the_search_is_repeatable(project):
    project.write("net.py", NET)
    project.write("configs/model/late.yaml", LATE.lstrip())
    found, _ = explored(project, "+model=late", "+scenario=explore", "run.explore.budget=20")
    assert any('"set": {"epoch": ' in yaml for yaml in found.values())
    assert found == explored(project, "+model=late", "+scenario=explore", "run.explore.budget=20")[0]


def test_a_search_needs_a_scenario_to_start_from(project):
    ended = project.ddplint("+model=dynamic", "scenario=explore")
    assert (ended.status, ended.err) == (
        2, "ddplint: error: explore has no scenario to start from; +scenario=[NAME,explore]\n")
