"""What each loss term adds to the gradient, from a small program whose numbers are known."""

import json

import pytest

from tests.conftest import Project

MODEL = '''
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Scale(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(value))

    def forward(self, x):
        return x * self.weight


class Net(nn.Module):
    def __init__(self, reentrant=False):
        super().__init__()
        self.shared, self.first, self.second, self.reentrant = Scale(2.0), Scale(1.0), Scale(0.0), reentrant

    def forward(self, x):
        x = x.sum() + self.first.weight * 0 if self.reentrant else x.sum()
        h = checkpoint(self.shared, x, use_reentrant=True) if self.reentrant else self.shared(x)
        return {"a": self.first(h), "b": self.second(h), "metric": h.detach()}
'''
CONFIG = '''# @package _global_
model: {_target_: scaled.Net}
loss: {terms: {a: output.a, b: {path: output.b, weight: 0.5}, metric: output.metric}}
scenario:
  typical: {batch: {x: {shape: [2], value: 3.0}}}
  alike: {batch: {x: {shape: [2], value: 4.0}}}
'''


@pytest.fixture
def scaled(project: Project) -> Project:
    project.write("scaled.py", MODEL)
    project.write("configs/model/scaled.yaml", CONFIG)
    return project


def test_every_term_by_module_for_a_page(scaled: Project) -> None:
    ended = scaled.ddplint("+model=scaled", "report.html=out.html", "report.json=-", "report.terminal=false", "run.device=cpu")
    [flow] = json.loads(ended.out)["term_flows"]          # `alike` reaches the same
    assert (flow["scenario"], flow["unknown"]) == ("typical", "")
    assert {depth["module"]: depth["largest"] for depth in flow["depths"]} == {
        "shared": {"a": 6.0, "b": 0.0}, "first": {"a": 12.0}, "second": {"b": 6.0}}
    page = (scaled.folder / "out.html").read_text()
    assert "What each loss term adds: typical, first step, rank 0" in page
    assert "<title>shared in b: 0</title>" in page and "<title>second in b: 6</title>" in page


def test_only_where_it_is_shown_or_asked_for(scaled: Project) -> None:
    argv = ["+model=scaled", "report.json=-", "report.terminal=false"]
    assert json.loads(scaled.ddplint(*argv, "report.evidence=run.json").out)["term_flows"] == []
    scaled.ddplint("evidence=run.json", "report.html=out.html", "report.terminal=false")
    assert "Not taken apart by loss term (run.by_term=true)." in (scaled.folder / "out.html").read_text()


def test_what_cannot_be_taken_apart_says_why(scaled: Project) -> None:
    argv = ["+model=scaled", "+model.reentrant=true", "run.by_term=true", "report.json=-", "report.terminal=false", "run.device=cpu"]
    [flow] = json.loads(scaled.ddplint(*argv).out)["term_flows"]
    assert flow["depths"] == []
    assert flow["unknown"].startswith("a backward for each term raised: ") and "heckpoint" in flow["unknown"]
