"""``expect:`` items: house rules over the evidence, in YAML only."""

import importlib.util
from pathlib import Path

import pytest

from ddplint.check import check
from ddplint.errors import SpecError
from ddplint.report import FAIL, NOT_CHECKED, PASS
from ddplint.spec import Item, Judgement

_spec = importlib.util.spec_from_file_location("build", Path(__file__).parent / "cases" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)

CASE = {
    "parameters": {"backbone.a": [2], "backbone.b": [2], "head.a": [2]},
    "use": [["111", "110"], ["111", "11."]],
    "ddp": {"find_unused_parameters": True},
    "calls": {"backbone": 1, "head": 1},
    "outputs": {"cls": {"behind": "all", "terms": ["ce"]}, "map": {"behind": ["backbone.a"]}},
    "terms": {"ce": {"reach": "all", "value": 3.0, "weight": 1.0},
              "kl": {"reach": ["backbone.a"], "value": 1.0, "weight": 1.0},
              "aux": {"reach": ["head.a"], "value": 1.0, "weight": 0.0}},
    "ranks": {0: {"size": [0.5, 0.1, 0.0]}, 1: {"size": [0.2, 0.1, 0.0]}},
}


def judge(expect: dict, case: dict = CASE, **item):
    return check(build.evidence(case), Judgement(checklist=(Item("house", expect=expect, **item),)))


def verdict(expect: dict, **item):
    report = judge(expect, **item)
    return report.items[0].verdict, [finding.message for finding in report.findings if finding.rule == "house"]


@pytest.mark.parametrize("expect", [
    {"parameters": "backbone.*", "reached_by": ["ce"]},
    {"parameters": ["backbone.a"], "reached_by": ["ce", "k*"]},
    {"parameters": "backbone.*", "used": "always"},
    {"parameters": "head.*", "used": "sometimes"},
    {"parameters": "head.*", "used": "always", "ranks": [0]},
    {"parameters": "backbone.*", "gradient": ">= 0.1"},
    {"modules": "head", "used": "always"},
    {"modules": "backbone", "reached_by": "kl"},
    {"outputs": "cls", "reached_by": "ce"},
    {"outputs": "map", "used": "never"},
    {"terms": "ce", "share": "> 0.5"},
    {"terms": ["ce", "kl"], "used": "always"},
    {"terms": "aux", "used": "never"},
])
def test_expectations_that_hold(expect):
    assert verdict(expect) == (PASS, [])


@pytest.mark.parametrize("expect, message", [
    ({"parameters": "backbone.*", "reached_by": ["kl"]}, "backbone.b: not reached by term 'kl'"),
    ({"parameters": "head.*", "reached_by": ["kl", "aux"]}, "head: not reached by terms 'kl' and 'aux'"),
    ({"parameters": "head.*", "used": "always"}, "head: expected to be used always, was used sometimes (3 of 4 steps)"),
    ({"parameters": "head.*", "gradient": "> 1e-6"}, "head: its largest gradient is 0, expected > 1e-6"),
    ({"modules": "head", "used": "never"}, "head: expected to be used never, was used always (4 of 4 steps)"),
    ({"outputs": "map", "reached_by": "ce"}, "output map: not reached by term 'ce'"),
    ({"terms": "kl", "share": "> 0.5"}, "term kl: its share of the loss is 0.25 on rank 1 in step 1, expected > 0.5"),
    ({"terms": "aux", "used": "always"}, "term aux: expected to be used always, was used never (0 of 4 steps)"),
])
def test_expectations_that_fail(expect, message):
    assert verdict(expect) == (FAIL, [message])


def test_a_name_that_fits_nothing_is_not_checked_with_the_nearest():
    report = judge({"parameters": "head.b", "used": "always"})
    assert (report.items[0].verdict, report.items[0].because) == (
        NOT_CHECKED, "no parameter matches 'head.b'; the nearest is 'head.a'")


def test_a_scenario_that_was_not_run_is_not_checked():
    item = judge({"parameters": "head.*", "used": "sometimes"}, scenarios=("night",)).items[0]
    assert (item.verdict, item.because) == (NOT_CHECKED, "the scenario was not run")


def test_only_the_named_scenarios_count():
    case = {**CASE, "scenarios": {"day": {"use": [["111"], ["111"]]}, "night": {}}}
    assert judge({"parameters": "head.*", "used": "always"}, case, scenarios=("day",)).items[0].verdict == PASS
    report = judge({"parameters": "head.*", "used": "always", "scenarios": "night"}, case)
    assert (report.items[0].verdict, report.items[0].examined) == (FAIL, 1)


def test_an_items_severity_is_that_of_its_findings():
    report = judge({"modules": "head", "used": "never"}, severity="warning")
    assert [(f.rule, f.severity) for f in report.findings if f.rule == "house"] == [("house", "warning")]


@pytest.mark.parametrize("expect, words", [
    ({}, "checklist.house.expect: names nothing to look at; exactly one of parameters, modules, outputs, terms"),
    ({"parameters": "a", "terms": "b", "used": "always"}, "names parameters and terms"),
    ({"parameters": "a"}, "checklist.house.expect: expects nothing; add one of reached_by, used, gradient, share"),
    ({"parameters": "a", "reachd_by": "b"}, "checklist.house.expect.reachd_by: is no expectation; did you mean 'reached_by'?"),
    ({"parameters": "a", "share": "> 1"}, "share: says nothing about parameters; it goes with terms"),
    ({"parameters": "a", "used": "often"}, "used: expected one of always, sometimes, never, found 'often'"),
    ({"parameters": "a", "gradient": "big"}, "gradient: expected a comparison, found 'big'; \"> 1e-6\""),
    ({"parameters": "a", "gradient": "> 1e-"}, "expected a comparison, found '> 1e-'"),
    ({"parameters": 3, "used": "always"}, "parameters: expected a name or a list of names, found 3"),
    ({"parameters": "a", "reached_by": []}, "reached_by: names no term"),
    ({"parameters": "a", "used": "always", "ranks": ["one"]}, r"ranks: expected ranks, found ['one']"),
])
def test_nonsense_is_told(expect, words):
    with pytest.raises(SpecError) as caught:
        judge(expect)
    assert words in str(caught.value)
