"""``ddplint init``: a spec to start from, that lints at once or says what is left to fill in."""

import importlib.util

import pytest
import yaml

NETS = """
import torch
from torch import nn

class TwoHeads(nn.Module):
    def __init__(self, num_classes: int, width: int = 16):
        super().__init__()
        self.body = nn.Conv2d(3, width, 3)
        self.cls, self.seg = nn.Linear(width, num_classes), nn.Conv2d(width, 5, 1)
        print("a line of the model's own")

    def forward(self, image, *, scale=1.0):
        features = self.body(image)
        return {"cls": self.cls(features.mean((2, 3))), "seg": self.seg(features)}

class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.body = nn.Embedding(50, 8), nn.GRU(8, 8, batch_first=True)

    def forward(self, tokens, mask):
        return self.body(self.embedding(tokens))[0] * mask.unsqueeze(-1)

class Demanding(nn.Module):
    def __init__(self, backbone: str):
        super().__init__()

    def forward(self, image):
        return image

class Picky(nn.Module):
    def forward(self, graph):
        raise TypeError("a graph is wanted")

def broken(size=3):
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def nets(project):
    project.write("nets_for_init.py", NETS)
    return project


def test_a_model_lints_at_once(nets):
    ended = nets.ddplint("init", "nets_for_init:TwoHeads")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == """\
# @package _global_
# A start, guessed from the code. Save it as configs/model/twoheads.yaml, then: ddplint +model=twoheads
model:
  _target_: nets_for_init.TwoHeads
  num_classes: 10  # required: a guess
  # width: 16

# A term for each output, guessed from its shape: put your own losses here.
loss:
  terms:
    cls: {_target_: torch.nn.functional.cross_entropy, args: [output.cls, batch.label_cls]}
    seg: {_target_: torch.nn.functional.cross_entropy, args: [output.seg, batch.label_seg]}

scenario:
  typical:
    # forward(image, scale) gets the entries that it names.
    batch:
      image: {shape: [4, 3, 64, 64], normal: [0, 1]}
      label_cls: {shape: [4], integers: [0, 10]}  # read by the loss
      label_seg: {shape: [4, 62, 62], integers: [0, 5]}  # read by the loss
  # Scenarios made from it, to switch on:
  # batch_of_one: {batch: {_target_: ddplint.generators.batch_of_one, base: typical}}
  # one_class: {batch: {_target_: ddplint.generators.one_class_only, base: typical, keys: label_cls}}
"""
    nets.write("configs/model/twoheads.yaml", ended.out)
    assert nets.ddplint("+model=twoheads", "run.steps=2").status == 0


def test_tokens_and_masks_are_told_by_their_names(nets):
    spec = yaml.safe_load(nets.ddplint("init", "nets_for_init:Text").out)
    assert spec["scenario"]["typical"]["batch"] == {
        "tokens": {"shape": [4, 16], "integers": [0, 50]},
        "mask": {"shape": [4, 16], "value": 1, "dtype": "int64"},
        "wanted": {"shape": [4, 16, 8], "normal": [0, 1]},
    }


@pytest.mark.parametrize(("target", "left"), [
    ("nets_for_init.Demanding", ["model.backbone: a required argument (str)",
                                 "loss.terms: the model was not built, so its outputs are not known",
                                 "scenario.typical.batch: the shapes are guessed from names alone"]),
    ("nets_for_init.Picky", ["scenario.typical.batch: forward() took none of the guesses; the first raised TypeError: a graph is wanted",
                             "loss.terms: the outputs are not known"]),
    ("nets_for_init.broken", ["model: building it raised RuntimeError: no weights here",
                              "loss.terms: the model was not built, so its outputs are not known"]),
])
def test_what_is_left_is_said(nets, target, left):
    ended = nets.ddplint("init", target)
    assert ended.status == 1
    assert ended.err.splitlines() == [f"ddplint: left to fill in: {line}" for line in left]
    yaml.safe_load(ended.out)


def test_a_config_of_the_project_gets_its_scenario(nets):
    nets.write("configs/model/mine.yaml", "_target_: nets_for_init.TwoHeads\nnum_classes: 3\n")
    ended = nets.ddplint("init", "mine")
    assert "Save it as configs/scenario/mine.yaml, then: ddplint +model=mine +scenario=mine" in ended.out
    spec = yaml.safe_load(ended.out)
    assert set(spec) == {"loss", "scenario"}
    assert spec["scenario"]["typical"]["batch"]["label_cls"] == {"shape": [4], "integers": [0, 3]}


@pytest.mark.parametrize(("name", "words"), [
    ("nets_for_init.TwoHead", "model._target_: 'nets_for_init' has no 'TwoHead'; did you mean 'TwoHeads'?"),
    ("twohead", "no model is called 'twohead'; one of detector, "),
    ("nowhere:Net", "model._target_: no module named 'nowhere'; the current folder and installed packages are searched"),
])
def test_a_mistyped_name(nets, name, words):
    ended = nets.ddplint("init", name)
    assert (ended.status, ended.out) == (2, "") and ended.err.startswith(f"ddplint: error: {words}")


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_a_hugging_face_class_gets_a_small_config(nets):
    spec = yaml.safe_load(nets.ddplint("init", "transformers:BertForSequenceClassification").out)
    assert spec["model"]["config"] == {"_target_": "transformers.models.bert.configuration_bert.BertConfig", "num_hidden_layers": 2}
    assert spec["loss"] == {"terms": "output.loss"}
    assert set(spec["scenario"]["typical"]["batch"]) == {"input_ids", "attention_mask", "labels"}
