"""Models in the forms that people write them in: how they are called, and what they return."""

import pytest

FORMS = """
import torch
from torch import nn
from torch.nn.functional import mse_loss

class Base(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(4, width), nn.Linear(width, 1), nn.Linear(width, 1)

    def both(self, x):
        hidden = self.body(x).relu()
        return self.a(hidden), self.b(hidden)

class PositionalTuple(Base):
    def forward(self, x, /, *, scale=1.0):
        return self.both(x)

class Answer:
    def __init__(self, a, b):
        self.a, self.levels = a, {"deep": [b]}

class KeywordOnlyObject(Base):
    def forward(self, *, x, y=None):
        return Answer(*self.both(x))

class Generator(Base):
    def forward(self, x):
        return ([level] for level in self.both(x))

class Detector(Base):
    def forward(self, images, targets=None):
        score, box = self.both(torch.stack([image.mean((1, 2)) for image in images]))
        boxes = torch.cat([target["boxes"] for target in targets])
        losses = {"objectness": mse_loss(score, torch.ones_like(score)), "box": torch.tensor(0.0)}
        if len(boxes):
            losses["box"] = mse_loss(box.mean().expand_as(boxes), boxes)
        return losses

def meta():
    with torch.device("meta"):
        return PositionalTuple()

def first(outputs, batch):
    if hasattr(outputs, "__next__"):
        outputs = [level[0] for level in outputs]
    return mse_loss(outputs[0] if isinstance(outputs, list | tuple) else outputs.a, batch["y"])
"""
PAIR = "t: {batch: {x: {shape: [4, 4]}, y: {shape: [4, 1]}}}"
DETECTION = """
  usual:
    batch:
      images: [{shape: [4, 8, 8]}, {shape: [4, 6, 6]}]
      targets: [{boxes: {shape: [2, 4]}}, {boxes: {shape: [1, 4]}}]
  empty: {batch: {_target_: ddplint.generators.empty_targets, base: usual, keys: targets.boxes}}"""


@pytest.mark.parametrize(("model", "terms", "scenarios", "said"), [
    ("PositionalTuple", "{_target_: forms.first}", f"{{{PAIR}}}", ["error [unused-parameter] b ", "no term of the loss reads output '1'"]),
    ("KeywordOnlyObject", "{_target_: forms.first}", f"{{{PAIR}}}",
     ["error [unused-parameter] b ", "no term of the loss reads output 'levels.deep.0'"]),
    ("Generator", "{_target_: forms.first}", f"{{{PAIR}}}", ["error [unused-parameter] b ", "ddp: t: error on ranks 0, 1 at step 1"]),
    ("Detector", "output", DETECTION, ["error [unused-parameter] b ", "scenario empty", "gradients: b.* (2): always in usual; never in empty"]),
    ("meta", "{_target_: forms.first}", f"{{{PAIR}}}",
     ["error [rank-failure]", "6 parameters are on the meta device (body.weight, body.bias, ...) and hold no values; model.to_empty() and"]),
])
def test_a_form(project, model, terms, scenarios, said):
    project.write("forms.py", FORMS)
    project.write("configs/model/mine.yaml", f"# @package _global_\nmodel: {{_target_: forms.{model}}}\n"
                  f"loss: {{terms: {terms}}}\nscenario: {scenarios}\n")
    ended = project.ddplint("+model=mine", "run.steps=2")
    assert (ended.status, ended.err) == (1, "")
    assert [text for text in said if text not in ended.out] == []
    assert ended.out.count(": error [") == 1
