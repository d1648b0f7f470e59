"""What the flags cost, measured in real ranks; and how a ratio is told."""

import re

import pytest

from ddplint.record.settings import compared
from tests.excerpts import assert_shown, command

RATIO = r"a step took \d+\.\d\d x as long, quartiles \d+\.\d\d-\d+\.\d\d over \d+ pairs of steps in turn"
BROKEN = """
# @package _global_
model: {_target_: ddplint.examples.multitask.MultiTaskNet}
loss: {terms: {cls: {_target_: torch.nn.functional.cross_entropy, args: [output.cls, batch.label]}}}
scenario: {typical: {batch: {image: {shape: [2, 3, 16, 16]}, label: {shape: [2], integers: [0, 10]},
                             mask: {shape: [2, 4, 4], integers: [0, 20]}}}}
"""


@pytest.mark.slow
def test_every_setting_that_fits_has_its_ratio_with_a_spread(project):
    ended = project.ddplint(*command(__file__), "run.device=cpu", "report.evidence=seen.json")
    assert ended.status == 0
    assert_shown(__file__, ended.out)
    tried = project.folder.joinpath("seen.json").read_text()
    told = dict(re.findall(r'"(\w+=\w+)":"(DDP [^"]*)"', tried))
    assert {setting: bool(re.search(RATIO, text)) for setting, text in told.items()} == {
        "find_unused_parameters=true": True, "find_unused_parameters=false": False, "static_graph=true": True,
        "static_graph=false": False, "gradient_as_bucket_view=true": True}
    assert re.search(rf"gradient_as_bucket_view=true: .*tried: DDP ran all 2 scenarios; {RATIO}", ended.out)


@pytest.mark.slow
def test_a_setting_that_fails_has_no_ratio(project):
    project.write("configs/model/broken.yaml", BROKEN.lstrip())
    project.ddplint("+model=broken", "run.try_settings=true", "run.device=cpu", "run.steps=2", "run.causes=false",
                    "report.evidence=seen.json")
    tried = project.folder.joinpath("seen.json").read_text()
    assert '"find_unused_parameters=false":"DDP fails in 1 of 1 scenarios' in tried
    assert '"find_unused_parameters=true":"DDP ran the scenario"' in tried          # nothing to compare it with
    assert "a step took" not in tried


def test_a_ratio_within_its_spread_is_no_difference():
    assert compared([1.0] * 9, [0.9, 1.0, 1.1] * 3) == (
        "a step took 1.00 x as long, quartiles 0.90-1.10 over 9 pairs of steps in turn: no difference beyond the spread")
    assert compared([1.0] * 9, [1.2] * 9) == "a step took 1.20 x as long, quartiles 1.20-1.20 over 9 pairs of steps in turn"
