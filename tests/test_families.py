"""The shipped configs of common model families: small, nothing downloaded, each with scenarios that bite."""

import importlib.util

import pytest


def needs(*names: str):
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"{', '.join(absent)} is not installed")


@pytest.mark.parametrize(("argv", "status", "found"), [
    pytest.param(["hf_gpt2"], 1, ["error [nonfinite-loss] loss", "scenario labels_ignored"], marks=needs("transformers")),
    pytest.param(["hf_vit"], 0, [], marks=needs("transformers")),
    pytest.param(["hf_detr"], 0, ["warning [zero-gradient] bbox_predictor", "scenario no_boxes"],
                 marks=needs("transformers", "scipy", "PIL")),
    pytest.param(["lightning"], 1, ["error [unused-parameter] age", "no term of the loss reads output 'forward.age'"],
                 marks=needs("lightning")),
    pytest.param(["torchvision"], 0, [], marks=needs("torchvision")),
    pytest.param(["timm"], 0, [], marks=needs("timm", "torchvision")),
    (["gan"], 1, ["error [varying-usage] generator", "ddp.find_unused_parameters=true"]),
    (["gan", "+ddp=find_unused"], 0, []),
])
def test_a_family(project, argv, status, found):
    ended = project.ddplint(f"+model={argv[0]}", *argv[1:], "run.steps=3")
    assert (ended.status, ended.err) == (status, "")
    assert [text for text in found if text not in ended.out] == []
    assert ended.out.count(": error [") == status
