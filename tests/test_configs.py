"""The shipped configs: each does one thing, says it first, and names only what exists."""

from pathlib import Path

import pytest
import yaml

from ddplint.compose.judgement import _REPORT
from ddplint.compose.parse import _RUN, KEYS
from ddplint.rules import catalogue

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
FILES = sorted(CONFIGS.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(CONFIGS).as_posix())
def test_every_file_says_first_what_it_is_for(file):
    lines = file.read_text().splitlines()
    first = lines[1] if lines[0].startswith("# @package") else lines[0]
    assert first.startswith("# ") and len(first) > 20


def test_every_rule_stands_in_the_checklist_once():
    items = yaml.safe_load((CONFIGS / "checklist/recommended.yaml").read_text())
    named = [name for item in items.values() for name in item["rules"]]
    assert sorted(named) == sorted(catalogue())


def test_every_key_of_a_spec_is_in_the_base_and_explained():
    text = (CONFIGS / "ddplint_base.yaml").read_text()
    base = yaml.safe_load(text)
    assert set(base) == {*KEYS, "defaults", "hydra"}
    assert (set(base["run"]), set(base["report"])) == (set(_RUN), set(_REPORT))
    lines = text.splitlines()
    for section in ("run", "report", "ddp"):
        start = lines.index(f"{section}:")
        assert any(line.strip().startswith("#") for line in lines[start - 2:start + 2])


def test_a_scenario_file_starts_with_its_own_key():
    for file in (CONFIGS / "scenario").glob("*.yaml"):
        assert list(yaml.safe_load(file.read_text()))[-1] == file.stem
