"""``ddplint.lint`` from objects: what the ranks import by name, batches as they are, mistakes in words."""

import functools
import importlib
import subprocess
import sys

import pytest

import ddplint
from tests.conftest import Project

NET = '''
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.used, self.idle = nn.Linear(3, width), nn.Linear(3, width)

    def forward(self, x):
        return {"used": self.used(x), "idle": self.idle(x)}


def loss(outputs, batch):
    return {"size": outputs["used"].square().mean() + batch["shift"]}


def all_of_it(outputs, batch):
    return loss(outputs, batch)["size"] + outputs["idle"].square().mean()


def batch(rank, step):
    return {"x": torch.full((2, 3), 1.0 + rank + step), "shift": torch.tensor(0.5)}
'''
SCRIPT = '''
import ddplint

if __name__ == "__main__":
    report = ddplint.lint(Net, loss=loss, batches=batch(0, 0), run={"device": "cpu"})
    print(report, [finding.group for finding in report.findings], report.spec["model"])
'''


@pytest.fixture
def net(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.write("net.py", NET)
    monkeypatch.syspath_prepend(project.folder)
    return importlib.import_module("net")


def test_functions_by_scenario_and_what_is_plain(net) -> None:
    scenarios = {"made": net.batch, "told": {"batch": {"x": {"shape": [2, 3]}, "shift": {"shape": [], "value": 1}}}}
    report = ddplint.lint(functools.partial(net.Net, width=4), loss=net.loss, batches=scenarios, run={"device": "cpu"},
                          accept=[{"rule": "unused-parameter", "match": "nothing", "because": "a test"}])
    assert repr(report) == "<Report FAIL: 1 error in 2 scenarios>"
    [finding] = report.findings
    assert (finding.rule, finding.group, finding.scenarios) == ("unused-parameter", "idle", ["made", "told"])
    assert finding.cause.place.file == "net.py" and finding.elements == 16
    assert report.unmatched_acceptances == ["unused-parameter nothing"]
    assert "outputs-used" in [item.id for item in report.items]


def test_a_script_with_a_batch_of_tensors(project: Project) -> None:
    project.write("train.py", NET + SCRIPT)
    ended = subprocess.run([sys.executable, "train.py"], cwd=project.folder, env=project.environment(), text=True,
                           capture_output=True, timeout=200)
    assert (ended.stdout, ended.stderr) == ("<Report FAIL: 1 error in 1 scenario> ['idle'] train.Net\n", "")


def test_a_healthy_one(net) -> None:
    report = ddplint.lint(net.Net, loss=net.all_of_it, batches={"a": net.batch(0, 0), "b": net.batch}, run={"device": "cpu"})
    assert repr(report) == "<Report PASS: no findings in 2 scenarios>"


@pytest.mark.parametrize(("model", "more", "message"), [
    (lambda: None, {"batches": dict}, "model: the ranks, which are other processes, cannot import <function <lambda>"),
    (functools.partial(dict, [1]), {"batches": dict}, "model: a partial with positional arguments"),
    (dict, {}, "no batches; batches=BATCH, or a function that makes one"),
    (dict, {"batches": {"a": {}}}, "scenario.a: says nothing about its batches"),
    (dict, {"batches": dict, "run": {"wrold_size": 2}}, "run: unknown key 'wrold_size'; did you mean 'world_size'?"),
])
def test_mistakes(model, more, message: str) -> None:
    with pytest.raises(ddplint.SpecError) as caught:
        ddplint.lint(model, **more)
    assert message in str(caught.value)
