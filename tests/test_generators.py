"""Scenarios made from other scenarios, and batches from a project's own data."""

import pytest
import torch

from ddplint import generators as make
from ddplint.compose import parse
from ddplint.errors import SpecError
from ddplint.record.batches import Feed

IMAGES = {"image": torch.rand(4, 3, 8, 8), "label": torch.arange(4), "boxes": torch.rand(4, 5, 4)}
TEXTS = {"input_ids": torch.arange(24).view(4, 6), "attention_mask": torch.ones(4, 6), "labels": torch.arange(4)}
DETECTION = ([torch.rand(3, 8, 8), torch.rand(3, 6, 6)],
             [{"boxes": torch.rand(2, 4), "labels": torch.ones(2)}, {"boxes": torch.rand(1, 4), "labels": torch.ones(1)}])


def shapes(batch):
    if isinstance(batch, torch.Tensor):
        return tuple(batch.shape)
    if isinstance(batch, dict):
        return {key: shapes(value) for key, value in batch.items()}
    return [shapes(value) for value in batch] if isinstance(batch, list | tuple) else batch


@pytest.mark.parametrize(("made", "expected"), [
    (make.empty_targets(IMAGES, "boxes"), {"image": (4, 3, 8, 8), "label": (4,), "boxes": (4, 0, 4)}),
    (make.empty_targets(DETECTION, ["1.boxes", "1.labels"]),
     [[(3, 8, 8), (3, 6, 6)], [{"boxes": (0, 4), "labels": (0,)}] * 2]),
    (make.empty_targets({"targets": DETECTION[1]}, "targets.boxes"),
     {"targets": [{"boxes": (0, 4), "labels": (2,)}, {"boxes": (0, 4), "labels": (1,)}]}),
    (make.last_incomplete_batch(IMAGES), {"image": (2, 3, 8, 8), "label": (2,), "boxes": (2, 5, 4)}),
    (make.last_incomplete_batch(IMAGES, size=3), {"image": (3, 3, 8, 8), "label": (3,), "boxes": (3, 5, 4)}),
    (make.batch_of_one(DETECTION), [[(3, 8, 8)], [{"boxes": (2, 4), "labels": (2,)}]]),
    (make.batch_of_one([IMAGES["image"], IMAGES["label"]]), [(1, 3, 8, 8), (1,)]),
    (make.short_sequences(TEXTS), {"input_ids": (4, 1), "attention_mask": (4, 1), "labels": (4,)}),
    (make.long_sequences(TEXTS, length=20), {"input_ids": (4, 20), "attention_mask": (4, 20), "labels": (4,)}),
    (make.long_sequences(TEXTS, keys="input_ids"), {"input_ids": (4, 24), "attention_mask": (4, 6), "labels": (4,)}),
    (make.missing_modality(IMAGES, "image"), {"image": None, "label": (4,), "boxes": (4, 5, 4)}),
])
def test_shapes(made, expected):
    assert shapes(made) == expected


def test_values():
    assert make.one_class_only(IMAGES, "label", 3)["label"].tolist() == [3, 3, 3, 3]
    assert make.all_labels_ignored(TEXTS, "labels")["labels"].tolist() == [-100] * 4
    extreme = make.extreme_values(IMAGES)
    assert torch.equal(extreme["image"], IMAGES["image"] * 1e4) and torch.equal(extreme["label"], IMAGES["label"])
    assert make.extreme_values(IMAGES, "image", scale=0)["image"].abs().max() == 0


def test_an_entry_that_is_not_there():
    with pytest.raises(SpecError, match="the batch has no 'lable'; did you mean 'label'?"):
        make.one_class_only(IMAGES, "lable")


def feed(scenarios: dict, name: str, rank: int = 0) -> Feed:
    spec = parse({"model": {"_target_": "a.b"}, "scenario": scenarios}, folder=".", installed=[])
    return Feed(spec, name, rank, 2, torch.device("cpu"))


TYPICAL = {"x": {"shape": [4, 2]}, "y": {"shape": [4], "integers": [0, 9]}}


def test_the_base_is_another_scenario_with_its_values():
    scenarios = {"typical": {"batch": TYPICAL},
                 "both": {"ranks": ["typical", "one"]},
                 "one": {"batch": {"_target_": "ddplint.generators.batch_of_one", "base": "typical"}},
                 "ignored": {"batch": {"_target_": "ddplint.generators.all_labels_ignored", "base": "one", "keys": "y"}}}
    whole, one = (feed(scenarios, name).item(1) for name in ("typical", "ignored"))
    assert torch.equal(one["x"], whole["x"][:1]) and one["y"].tolist() == [-100]
    assert [len(feed(scenarios, "both", rank).item(0)["x"]) for rank in (0, 1)] == [4, 1]


def test_the_base_is_described_in_place():
    node = {"_target_": "ddplint.generators.one_class_only", "base": TYPICAL, "keys": ["y"], "value": 2}
    assert feed({"a": {"batch": node}}, "a").item(0)["y"].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(("base", "words"), [("typicl", "no scenario is called 'typicl'; did you mean 'typical'?"),
                                             ("one", "scenario.one.batch.base: refers to itself")])
def test_a_base_that_cannot_be(base, words):
    scenarios = {"typical": {"batch": TYPICAL}, "one": {"batch": {"_target_": "ddplint.generators.batch_of_one", "base": base}}}
    with pytest.raises(SpecError, match=words):
        feed(scenarios, "one").item(0)


class Data:
    def __init__(self):
        self.said = []

    def prepare_data(self):
        self.said.append("prepared")

    def setup(self, stage):
        self.said.append(stage)

    def train_dataloader(self):
        return [10, 11, 12]


def test_a_data_module_is_set_up_and_shared_out():
    data = Data()
    batches = make.train_batches(data, rank=1, world_size=2)
    assert [next(batches) for _ in range(4)] == [11, 10, 12, 11]
    assert data.said == ["prepared", "fit"]
    assert list(make.train_batches([], rank=0, world_size=2)) == []
    with pytest.raises(SpecError, match="a int is no loader"):
        make.train_batches(3)
