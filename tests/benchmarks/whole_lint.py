"""A whole lint (6 scenarios x 3 steps x 2 ranks, small CNN) beside a hand-written torchrun script that checks nothing."""

import tempfile
from pathlib import Path

from measure import Command, Row, ddplint, interleaved, median, peak_memory, ratio, spread, torchrun

SCENARIOS = 6
SCRIPT = '''
"""What people write by hand: one scenario, three steps, nothing is checked."""
import os

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from ddplint.examples.multitask import MultiTaskNet

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(MultiTaskNet(classes=10, regions=20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for step in range(3):
    image, label = torch.randn(4, 3, 64, 64), torch.randint(10, (4,))
    mask = torch.randint(20, (4, 16, 16))
    output = model(image)
    loss = cross_entropy(output["cls"], label) + 0.5 * cross_entropy(output["seg"], mask)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
'''
MODEL = """
# @package _global_
defaults:
  - /loss: multitask_complete
  - _self_
model: {_target_: ddplint.examples.multitask.MultiTaskNet, classes: 10, regions: 20}
"""
SCENARIO = """
s{number}:
  batch:
    image: {{shape: [4, 3, 64, 64], normal: [0, {number}]}}
    label: {{shape: [4], integers: [0, 10]}}
    mask: {{shape: [4, 16, 16], integers: [0, 20]}}
"""


def whole_lint(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one, all_of_them, script = _commands(folder)
        seen = interleaved({c.name: c.run for c in (one, all_of_them, script)}, rounds)
        memory = interleaved({c.name: (lambda c=c: peak_memory(c)) for c in (one, script)}, 2)
    (lint, lint_cpu), (hand, hand_cpu), (single, _) = (
        [list(values) for values in zip(*seen[c.name], strict=True)] for c in (all_of_them, script, one))
    processor, processor_spread = ratio(lint_cpu, hand_cpu)
    once, once_spread = ratio(lint, hand)
    further = [(a - b) / (SCENARIOS - 1) for a, b in zip(lint, single, strict=True)]
    held, held_spread = ratio(memory[one.name], memory[script.name])
    return [
        Row(f"lint of {SCENARIOS} scenarios x 3 steps x 2 ranks", median(lint), "s", spread(lint)),
        Row("hand-written torchrun script, one scenario, no checks", median(hand), "s", spread(hand)),
        Row("the lint against the script once", once, "x", once_spread, 1.0),
        Row("the lint against the script once, processor time of all processes", processor, "x", processor_spread),
        Row(f"the lint against the script once per scenario ({SCENARIOS} x)", once / SCENARIOS, "x", "", 0.25),
        Row("a further scenario, warm, its steps included", median(further), "s", spread(further), 0.3),
        Row("peak memory (shared pages once) of a lint against the script", held, "x", held_spread, 1.1),
    ]


def _commands(folder: Path) -> tuple[Command, Command, Command]:
    group = folder / "configs" / "scenario"
    group.mkdir(parents=True)
    names = [f"s{number}" for number in range(1, SCENARIOS + 1)]
    for number, name in enumerate(names, 1):
        (group / f"{name}.yaml").write_text(SCENARIO.format(number=number))
    model = folder / "configs" / "model" / "small_cnn.yaml"
    model.parent.mkdir()
    model.write_text(MODEL.lstrip())
    script = folder / "by_hand.py"
    script.write_text(SCRIPT)
    return (Command("lint of one scenario", ddplint("+model=small_cnn", f"+scenario={names[0]}"), folder),
            Command("lint", ddplint("+model=small_cnn", f"+scenario=[{','.join(names)}]"), folder),
            Command("script", torchrun(script), folder))
