"""From a command line to the spec that would be run: groups, folders, sweeps, and nothing left behind."""

import json
import os
import subprocess
import sys

import pytest

from ddplint.evidence import Evidence, ScenarioSeen

NET = "# @package _global_\nmodel: {_target_: net.Net, width: 3}\n"
A = "a: {batch: {x: {shape: [2, 3]}}}\n"
B = "b: {batch: {x: {shape: [4, 3]}}}\n"


@pytest.fixture
def mine(project):
    """A user's project: one model, two scenarios, no other file."""
    project.write("configs/model/mine.yaml", NET)
    project.write("configs/scenario/a.yaml", A)
    project.write("configs/scenario/b.yaml", B)
    return project


@pytest.mark.parametrize(("argv", "names"), [
    (["+scenario=a"], [("a",)]),
    (["+scenario=[a,b]"], [("a", "b")]),
    (["-m", "+scenario=a,b"], [("a",), ("b",)]),
    (["-m", "+scenario=glob(*)", "--config-dir=configs"], None),
    (["-m", "+scenario=[a,b],a"], [("a", "b"), ("a",)]),
])
def test_scenarios_compose_into_one_mapping(mine, specs, argv, names):
    mine.ddplint("+model=mine", *argv)
    found = [spec.lint for spec in specs]
    assert found == names if names else {("a",), ("b",)} <= set(found)


@pytest.mark.parametrize(("argv", "names"), [
    ([], ("a",)),
    (["scenario=b"], ("b",)),
    (["scenario=[a,b]"], ("a", "b")),
    (["+scenario=b"], ("a", "b")),
])
def test_a_model_file_may_bring_its_scenarios(mine, specs, argv, names):
    mine.write("configs/model/mine.yaml", NET + "defaults: [{/scenario: [a]}]\n")
    mine.ddplint("+model=mine", *argv)
    assert [spec.lint for spec in specs] == [names]


@pytest.mark.parametrize("folder", ["configs", "conf", "config"])
def test_the_users_folder_is_found_and_wins(project, specs, folder):
    project.write(f"{folder}/model/multitask.yaml", NET + "scenario: " + "{" + A.strip() + "}\n")
    project.ddplint("+model=multitask")
    assert specs[0].model == {"_target_": "net.Net", "width": 3}
    assert specs[0].folder == str(project.folder)


def test_config_dir_wins_over_the_folder(mine, specs):
    mine.write("other/model/mine.yaml", NET.replace("3", "7"))
    mine.ddplint("+model=mine", "+scenario=a", "--config-dir", "other")
    assert specs[0].model["width"] == 7


def test_a_primary_of_the_users_own_makes_the_command_short(mine, specs):
    mine.write("configs/ddplint.yaml", "defaults: [ddplint_base, model: mine, scenario: a, _self_]\nrun: {steps: 7}\n")
    mine.ddplint()
    assert (specs[0].run.steps, specs[0].lint) == (7, ("a",))


def test_a_users_own_groups_need_not_resolve(mine, specs):
    mine.write("configs/data/images.yaml", "root: ${paths.root}\nsize: ???\n")
    assert mine.ddplint("+model=mine", "+scenario=a", "+data=images").err == ""
    assert len(specs) == 1


def test_our_own_keys_need_no_plus(mine, specs):
    mine.ddplint("+model=mine", "+scenario=a", "ddp.bucket_cap_mb=10", "rules.zero-gradient=off", "run.real=[batch.x]")
    assert specs[0].ddp["bucket_cap_mb"] == 10
    assert specs[0].judgement.rules["zero-gradient"].severity == "off"
    assert specs[0].run.real == ("batch.x",)


def test_interpolations_are_resolved(mine, specs):
    mine.write("configs/model/mine.yaml", NET + "wide: 5\nscenario:\n  c:\n    batch: {x: {shape: [2, '${wide}']}}\n")
    mine.ddplint("+model=mine", "+scenario=a")
    assert specs[0].scenarios["c"].batch == {"x": {"shape": [2, 5]}}


@pytest.mark.parametrize("argv", [[], ["-m"], ["-m", "run.seed=1,2"]])
def test_nothing_is_left_in_the_users_folder(mine, specs, argv):
    before = mine.files()
    ended = mine.ddplint("+model=mine", "+scenario=a", *argv)
    assert ended.err == ""
    assert specs and mine.files() == before


def test_help_lists_the_users_own_models_and_scenarios(mine):
    ended = mine.ddplint("--help")
    assert ended.status == 0
    listed = ended.out.partition("== Spec ==")[0].splitlines()
    groups = {line.split(": ")[0]: line.split(": ")[1].split(", ") for line in listed if line.startswith(("model", "scen"))}
    assert {"mine", "multitask", "hf_bert"} <= set(groups["model"])
    assert {"a", "b", "positive"} <= set(groups["scenario"])


def test_help_for_a_reader_that_has_left(mine):
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([sys.executable, "-m", "ddplint", "--help"], cwd=mine.folder, env=mine.environment(), text=True,
                           stdout=write, stderr=subprocess.PIPE, timeout=200)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize(("argv", "words"), [
    (["--cfg", "job", "-p", "run"], "world_size: 2"),
    (["--info", "searchpath"], "pkg://ddplint.configs"),
    (["--version"], "ddplint 0.1.0"),
])
def test_hydras_own_options_work(mine, argv, words):
    ended = mine.ddplint("+model=mine", *argv)
    assert (ended.status, ended.err) == (0, "")
    assert words in ended.out


def test_completion_knows_the_users_models(mine, monkeypatch):
    monkeypatch.setenv("COMP_LINE", "ddplint +model=mi")
    assert "+model=mine" in mine.ddplint("-sc", "query=bash").out


@pytest.mark.parametrize("model", ["multitask", "dynamic", "tied", "routed", "detector", "hf_bert"])
def test_every_shipped_model_composes_in_an_empty_folder(project, specs, model):
    project.ddplint(f"+model={model}")
    assert len(specs) == 1 and specs[0].lint
    assert project.files() == []


def test_the_scenarios_of_a_sweep_that_replaces_them(project, specs):
    project.ddplint("-m", "+model=dynamic", "scenario=positive,negative")
    assert [spec.lint for spec in specs] == [("positive",), ("negative",)]


def test_a_sweep_gives_one_report(mine, monkeypatch):
    monkeypatch.setattr("ddplint.cli._record", lambda spec: Evidence(
        {"model": "m"}, scenarios=[ScenarioSeen(name) for name in spec.lint]))
    ended = mine.ddplint("-m", "+model=mine", "+scenario=a,b", "report.json=-", "report.terminal=false")
    assert [scenario["name"] for scenario in json.loads(ended.out)["scenarios"]] == ["a", "b"]


def test_evidence_is_written_and_judged_again(mine, monkeypatch):
    monkeypatch.setattr("ddplint.cli._record", lambda spec: Evidence(
        {"model": "m"}, scenarios=[ScenarioSeen(name) for name in spec.lint]))
    first = mine.ddplint("-m", "+model=mine", "+scenario=a,b", "report.evidence=run.json")
    monkeypatch.setattr("ddplint.cli._record", None)
    assert mine.ddplint("evidence=run.json") == first
