"""``{from: NAME}``: sections of the user's own configuration in place of ours, and hints about what is missing."""

import pytest

from ddplint.compose.borrow import keywords


@pytest.fixture
def template(project):
    """The layout of lightning-hydra-template."""
    project.write(".project-root", "")
    project.write("configs/paths/default.yaml", "root_dir: ${oc.env:PROJECT_ROOT}\ndata_dir: ${paths.root_dir}/data/\n")
    project.write("configs/data/mine.yaml", "_target_: src.data.Module\ndata_dir: ${paths.data_dir}\n")
    project.write("configs/trainer/ddp.yaml", "_target_: lightning.pytorch.trainer.Trainer\n"
                  "strategy: ddp_find_unused_parameters_true\nsync_batchnorm: true\n")
    project.write("configs/model/mine.yaml", "_target_: src.Model\n")
    return project


def test_batches_and_keywords_of_the_project_itself(template, specs, monkeypatch):
    monkeypatch.delenv("PROJECT_ROOT", raising=False)
    ended = template.ddplint("+model=mine", "+data=mine", "+paths=default", "+trainer=ddp", "ddp.from=trainer",
                             "+scenario=from_data")
    assert ended.err == ""
    source = {"_target_": "src.data.Module", "data_dir": f"{template.folder}/data/"}
    assert specs[0].scenarios["from_data"].loader == {"_target_": "ddplint.generators.train_batches", "source": source}
    assert specs[0].ddp == {"find_unused_parameters": True, "static_graph": False, "sync_batchnorm": True}


@pytest.mark.parametrize(("argv", "words"), [
    (["+data=mine"], "data.data_dir: Interpolation key 'paths.data_dir' not found; +paths=NAME adds it, one of default"),
    ([], "scenario.from_data.batch.from: the config has no section 'data'; +data=NAME, one of mine"),
    (["+data=mine", "+paths=default", "ddp.from=paths"],
     "ddp.from: 'paths' has neither a strategy nor ddp_* keys; a Lightning trainer, or Hugging Face TrainingArguments"),
    (["+data=mine", "+paths=default", "ddp.from=args.json"], "ddp.from: args.json cannot be read (No such file or directory)"),
])
def test_what_is_missing_is_said(template, specs, argv, words):
    ended = template.ddplint("+model=mine", "+scenario=from_data", *argv)
    assert (ended.status, ended.err) == (2, f"ddplint: error: {words}\n")


def test_a_variable_that_is_not_set(template, specs, monkeypatch):
    monkeypatch.delenv("PROJECT_ROOT", raising=False)
    (template.folder / ".project-root").unlink()
    ended = template.ddplint("+model=mine", "+data=mine", "+paths=default", "+scenario=from_data")
    assert ended.status == 2 and "PROJECT_ROOT=VALUE ddplint ... sets it" in ended.err


def test_training_arguments_from_their_file(project, specs):
    project.write("args.json", '{"output_dir": "out", "ddp_bucket_cap_mb": 10, "gradient_checkpointing": true}')
    project.ddplint("+model=hf_bert", "ddp.from=args.json")
    assert specs[0].ddp == {"find_unused_parameters": False, "static_graph": False, "sync_batchnorm": False, "bucket_cap_mb": 10}


@pytest.mark.parametrize(("section", "expected"), [
    ({"strategy": "auto"}, {}),
    ({"strategy": "ddp_find_unused_parameters_false"}, {"find_unused_parameters": False}),
    ({"strategy": {"_target_": "lightning.pytorch.strategies.DDPStrategy", "static_graph": True, "timeout": 3}},
     {"static_graph": True}),
    ({"_target_": "transformers.TrainingArguments"}, {"find_unused_parameters": True}),
    ({"output_dir": "o", "ddp_find_unused_parameters": False, "ddp_broadcast_buffers": None}, {"find_unused_parameters": False}),
    ({"lr": 3}, None),
])
def test_keywords(section, expected):
    assert keywords(section) == expected
