"""Public models, with what real DDP does with each under three settings of its flags."""

import fnmatch
import functools
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from ddplint.check import check
from ddplint.compose import parse
from ddplint.record import record
from ddplint.report import Report
from ddplint.rules import catalogue
from tests.conftest import TABLES

FOLDER = Path(__file__).parent / "zoo"
TRUTH = {name: blocks for name, blocks in json.loads((FOLDER / "zoo_truth.json").read_text()).items() if name[0] != "_"}
FLAGS = {"false": {}, "find": {"find_unused_parameters": True}, "static": {"static_graph": True}}
RANDOM = ("hf_opt_layerdrop", "hf_wav2vec2_ctc", "hf_switch_transformers")
pytestmark = [pytest.mark.zoo, pytest.mark.usefixtures("kept_ranks")]       # the models' libraries are imported once


@functools.cache
def zoo():
    """The module with the entries; it imports torch, transformers only when a model is made."""
    spec = importlib.util.spec_from_file_location("zoo_visible", FOLDER / "zoo_visible.py")
    module = sys.modules.setdefault("zoo_visible", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


def missing(entry: str) -> list[str]:
    """The libraries that an entry needs and that are not installed."""
    names = {"pillow": "PIL"}
    return [need for need in zoo().ENTRIES[entry].needs if importlib.util.find_spec(names.get(need, need)) is None]


def lint(entry: str, flags: str) -> Report:
    plain = zoo().spec(entry, **FLAGS[flags])
    plain["run"] |= {"device": "cpu", "causes": flags == "false"}
    spec = parse(plain, folder=str(FOLDER), installed=list(catalogue()))
    return check(record(spec), spec.judgement)


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest):
    """One line per entry and flag, printed as a table at the end of the session."""
    lines: list[str] = []
    yield lines
    request.config.stash[TABLES] += [f"{'entry':44} {'flags':7} {'outcomes':40} errors warnings", *lines]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("entry", TRUTH)
def test_entry(entry: str, flags: str, rows: list[str]) -> None:
    if absent := missing(entry):
        pytest.skip(f"needs {', '.join(absent)} (pip install 'ddplint[zoo]')")
    report, truth = lint(entry, flags), TRUTH[entry]
    told = {s.name: s.outcome for s in report.scenarios}
    by_severity = {s: [f for f in report.findings if f.severity == s] for s in ("error", "warning")}
    rows.append(f"{entry:44} {flags:7} {' '.join(told.values()):40} {len(by_severity['error']):6} {len(by_severity['warning'])}")
    assert told == {name: block["ddp"][flags] for name, block in truth.items()}
    if entry not in RANDOM:
        assert without_gradient(report) == {name: expected(block, report) for name, block in truth.items()}
    errors = {(f.rule, s) for f in by_severity["error"] for s in f.scenarios}
    healthy = {name for name, block in truth.items() if block["healthy"]}
    assert not [error for error in errors if error[1] in healthy and flags == "false"]


def without_gradient(report: Report) -> dict[str, set[str]]:
    """Scenario -> the parameters that got no gradient on any rank in any step."""
    found: dict[str, set[str]] = {s.name: set() for s in report.scenarios}
    for name, cells in report.usage.items():
        for scenario, shares in cells.items():
            if shares and all(share == 0 for share in shares):
                found[scenario].add(name)
    return found


def expected(block: dict, report: Report) -> set[str]:
    patterns = [pattern.replace("[", "[[]") for pattern in block["none"]]
    return {name for name in report.usage if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
