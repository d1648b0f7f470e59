"""A composed mapping becomes a Spec, in every form of every seam."""

import pytest

from ddplint.compose import parse
from ddplint.errors import SpecError
from ddplint.spec import Acceptance, Item, Loss, Node, ReportOptions, RuleSetting, Run, Scenario, Spec

RULES = ["unused-parameter", "zero-gradient", "unused-output"]
MODEL: Node = {"_target_": "my_pkg.Net", "width": 8}
BATCH = {"image": {"shape": [4, 3, 8, 8], "normal": [0, 1]}}
SCENARIO = {"typical": {"batch": BATCH}}


def spec(**sections) -> Spec:
    return parse({"model": MODEL, "scenario": SCENARIO, **sections}, folder="/project", installed=RULES)


def test_the_least_that_can_be_said():
    assert spec() == Spec(model=MODEL, scenarios={"typical": Scenario("typical", batch=BATCH)}, lint=("typical",),
                          folder="/project")


@pytest.mark.parametrize(("terms", "expected"), [
    ("output.loss", "output.loss"),
    ("output", "output"),
    ({"_target_": "my_pkg.losses"}, {"_target_": "my_pkg.losses"}),
    ({"aux": "output.aux"}, {"aux": "output.aux"}),
    ({"aux": {"path": "output.aux", "weight": 1}}, {"aux": {"path": "output.aux", "weight": 1.0}}),
    ({"cls": {"_target_": "a.b", "args": ["output.cls"], "weight": 0.5}},
     {"cls": {"_target_": "a.b", "args": ["output.cls"], "weight": 0.5}}),
])
def test_every_form_of_the_terms(terms, expected):
    assert spec(loss={"terms": terms, "total": None}).loss == Loss(terms=expected)


def test_total_optimizer_step_and_forward():
    node = {"_target_": "my_pkg.thing", "lr": 0.1}
    found = spec(loss={"total": node}, optimizer=node, step=node, forward=node)
    assert (found.loss.total, found.optimizer, found.step, found.forward) == (node, node, node, node)
    assert spec(forward={"x": "batch.image"}).forward == {"x": "batch.image"}


@pytest.mark.parametrize("source", [
    {"batch": {"_target_": "my_pkg.batch", "split": "train"}},
    {"batch": [{"shape": [2]}, {"nested": {"shape": [], "value": 3, "dtype": "int64"}}]},
    {"loader": {"_target_": "my_pkg.loader"}},
    {"file": "batch.pt"},
])
def test_every_source_of_a_scenario(source):
    assert spec(scenario={"a": source}).scenarios == {"a": Scenario("a", **source)}


def test_scenarios_that_refer_to_others_are_linted_beside_them():
    found = spec(scenario={**SCENARIO, "both": {"ranks": ["typical", "turns"]}, "turns": {"sequence": ["typical"]}})
    assert found.lint == ("typical", "both", "turns")
    assert found.scenarios["both"] == Scenario("both", ranks=("typical", "turns"))
    assert found.scenarios["turns"] == Scenario("turns", sequence=("typical",))


def test_what_stands_beside_a_source():
    beside = {"set": {"epoch": 20}, "mode": "eval", "autocast": "bfloat16", "accumulate": 2}
    assert spec(scenario={"late": {"batch": BATCH, **beside}}).scenarios["late"] == Scenario("late", batch=BATCH, **beside)


def test_a_dtype_is_spelt_with_or_without_torch():
    found = spec(scenario={"a": {"batch": {"x": {"shape": [1], "dtype": "torch.bool"}}}})
    assert found.scenarios["a"].batch == {"x": {"shape": [1], "dtype": "bool"}}


def test_rules_in_their_short_and_long_forms():
    found = spec(rules={
        "unused-parameter": "warning",
        "unused-output": False,
        "zero-gradient": {"severity": False, "ignore": "adapter.*", "least": 4},
        "my-rule": {"_target_": "my_pkg.my_rule", "severity": "note"},
    })
    assert found.judgement.rules == {
        "unused-parameter": RuleSetting(severity="warning"),
        "unused-output": RuleSetting(severity="off"),
        "zero-gradient": RuleSetting(severity="off", ignore=("adapter.*",), options={"least": 4}),
        "my-rule": RuleSetting(severity="note", target="my_pkg.my_rule"),
    }


def test_the_checklist_and_what_drops_an_item():
    found = spec(rules={"my-rule": {"_target_": "my_pkg.my_rule"}}, checklist={
        "text": {"title": "Text learns", "rule": "zero-gradient", "match": "text.*", "scenarios": ["captions"]},
        "mine": {"rules": ["my-rule", "unused-output"], "severity": "warning"},
        "reach": {"expect": {"parameters": "backbone.*", "reached_by": ["cls", "seg"]}},
        "dropped": False,
    })
    assert found.judgement.checklist == (
        Item("text", "Text learns", ("zero-gradient",), match=("text.*",), scenarios=("captions",)),
        Item("mine", rules=("my-rule", "unused-output"), severity="warning"),
        Item("reach", expect={"parameters": "backbone.*", "reached_by": ["cls", "seg"]}),
    )


def test_acceptances_report_and_run():
    accepted = {"rule": "unused-parameter", "match": "bert.pooler.*", "because": "old checkpoints"}
    found = spec(accept=[accepted], report={"json": "out.json", "html": None, "fail_on": "warning", "verbose": True},
                 run={"world_size": 4, "timeout": 5, "real": "batch.mask"})
    assert found.judgement.accept == (Acceptance(**accepted),)
    assert found.judgement.fail_on == "warning"
    assert found.report == ReportOptions(fail_on="warning", verbose=True, files={"json": "out.json"})
    assert found.run == Run(world_size=4, timeout=5.0, real=("batch.mask",))


def test_the_users_own_groups_are_passed_over():
    assert spec(data={"x": 1}, paths=None, trainer=3, seed=1) == spec()


@pytest.mark.parametrize(("sections", "message"), [
    ({"model": None}, "no model; +model=NAME"),
    ({"model": "net.Net"}, "model: expected a mapping, found 'net.Net'"),
    ({"model": {"target": "net.Net"}}, "model: _target_ is missing; did you mean '_target_' by 'target'?"),
    ({"model": {"width": 3}}, "model: _target_ is missing; _target_: my_pkg.MyThing"),
    ({"model": {"_target_": "net"}}, "model._target_: expected a dotted path, found 'net'; my_pkg.my_module.MyThing"),
    ({"model": {"_target_": "a.b", True: 1}}, "model: a key reads as true; YAML takes on, off, yes and no for booleans: "
                                              "put the key in quotes"),
    ({"scenario": {}}, "no scenario; +scenario=NAME, or a mapping `scenario:` in the model's file"),
    ({"scenarios": {}}, "unknown key 'scenarios'; did you mean 'scenario'?"),
    ({"optimiser": {}}, "unknown key 'optimiser'; did you mean 'optimizer'?"),
    ({"loss": {"term": "output"}}, "loss: unknown key 'term'; did you mean 'terms'?"),
    ({"loss": {"terms": "outputs.x"}}, "loss.terms: the path 'outputs.x' does not start with output or batch; "
                                       "did you mean 'output'?"),
    ({"loss": {"terms": {}}}, "loss.terms: expected a path, a mapping of terms, or _target_, found an empty mapping; output.loss"),
    ({"loss": {"terms": {"a": {"_target_": "a.b", "args": "output"}}}},
     "loss.terms.a.args: expected a list, found 'output'; args: [output.cls, batch.label]"),
    ({"loss": {"terms": {"a": {"_target_": "a.b", "weight": "high"}}}}, "loss.terms.a.weight: expected a number, found 'high'"),
    ({"forward": {"x": "image"}}, "forward.x: the path 'image' does not start with batch; one of batch"),
    ({"run": {"wrold_size": 2}}, "run: unknown key 'wrold_size'; did you mean 'world_size'?"),
    ({"run": {"steps": -1}}, "run.steps: expected a whole number of at least 1, found -1"),
    ({"run": {"steps": True}}, "run.steps: expected a whole number of at least 1, found True"),
    ({"run": {"timeout": 0}}, "run.timeout: expected a number above 0, found 0"),
    ({"run": {"engine": "locla"}}, "run.engine: expected one of local, torchrun, simulate, found 'locla'; "
                                   "did you mean 'local'?"),
    ({"rules": {"zero-gradeint": "off"}}, "rules: no rule is called 'zero-gradeint'; did you mean 'zero-gradient'?"),
    ({"rules": {"zero-gradient": "of"}}, "rules.zero-gradient: expected one of error, warning, note, off, found 'of'; "
                                         "did you mean 'off'?"),
    ({"checklist": {"a": {"rule": "none"}}}, "checklist.a: no rule is called 'none'; "
                                             "one of unused-output, unused-parameter, zero-gradient"),
    ({"checklist": {"a": {"title": "A"}}}, "checklist.a: names no rule; either rule: NAME or "
                                           "expect: {parameters: ..., reached_by: ...}"),
    ({"accept": [{"rule": "unused-output", "match": "x", "because": " "}]},
     "accept[0]: 'because' is missing; {rule: unused-parameter, match: \"bert.pooler.*\", because: old checkpoints need it}"),
    ({"accept": {"rule": "unused-output"}}, "accept: expected a list, found a mapping; "
     "{rule: unused-parameter, match: \"bert.pooler.*\", because: old checkpoints need it}"),
    ({"report": {"fail_on": "errors"}}, "report.fail_on: expected one of error, warning, note, found 'errors'; "
                                        "did you mean 'error'?"),
    ({"report": {"json": "a", "evidence": "a"}}, "report.evidence: 'a' is a report's file, too"),
])
def test_mistakes_are_told_with_place_and_remedy(sections, message):
    with pytest.raises(SpecError) as raised:
        spec(**sections)
    assert str(raised.value) == message


@pytest.mark.parametrize(("scenario", "message"), [
    (None, "scenario.a: expected a mapping, found nothing"),
    ({}, "scenario.a: says nothing about its batches; exactly one of batch, loader, file, ranks, sequence"),
    ({"file": "a.pt", "batch": BATCH}, "scenario.a: has batch and file; exactly one of batch, loader, file, ranks, sequence"),
    ({"batches": BATCH}, "scenario.a: unknown key 'batches'; did you mean 'batch'?"),
    ({"batch": 3}, "scenario.a.batch: expected a mapping of tensors, or _target_, found 3; image: {shape: [4, 3, 8, 8]}"),
    ({"ranks": ["b"]}, "scenario.a.ranks[0]: no scenario is called 'b'; one of a"),
    ({"sequence": ["a"]}, "scenario.a.sequence[0]: refers to itself (a > a)"),
    ({"ranks": "a"}, "scenario.a.ranks: expected a list of scenario names, found 'a'"),
    ({"batch": {"x": {"shape": [2, -1]}}}, "scenario.a.batch.x.shape[1]: expected a whole number of at least 0, found -1"),
    ({"batch": {"x": {"shape": 2}}}, "scenario.a.batch.x.shape: expected a list of sizes, found 2; [] is a scalar"),
    ({"batch": {"x": {"shape": [2], "integer": [0, 2]}}}, "scenario.a.batch.x: unknown key 'integer'; "
                                                          "did you mean 'integers'?"),
    ({"batch": {"x": {"shape": [2], "integers": [3, 3]}}}, "scenario.a.batch.x.integers: nothing lies from 3 up to 3; "
                                                           "the upper end is excluded"),
    ({"batch": {"x": {"shape": [2], "uniform": [1, 0]}}}, "scenario.a.batch.x.uniform: 1 is above 0; [low, high]"),
    ({"batch": {"x": {"shape": [2], "normal": [0, 1], "value": 3}}},
     "scenario.a.batch.x: has normal and value; at most one of normal, uniform, integers, value"),
    ({"batch": {"x": {"normal": [0, 1]}}}, "scenario.a.batch.x: a tensor without a shape; shape: [4, 3, 8, 8]"),
    ({"batch": {"x": {"shape": [2], "dtype": "flaot32"}}},
     "scenario.a.batch.x.dtype: expected one of bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, "
     "float64, complex64, complex128, found 'flaot32'; did you mean 'float32'?"),
    ({"file": "a.pt", "mode": "evaluate"}, "scenario.a.mode: expected one of train, eval, found 'evaluate'; "
                                           "did you mean 'eval'?"),
    ({"file": "a.pt", "autocast": "bf16"}, "scenario.a.autocast: expected one of bfloat16, float16, float32, found 'bf16'; "
                                           "did you mean 'bfloat16'?"),
    ({"file": "a.pt", "accumulate": 0}, "scenario.a.accumulate: expected a whole number of at least 1, found 0"),
    ({"loader": {"_target_": 3}}, "scenario.a.loader._target_: expected a dotted path, found 3; my_pkg.my_module.MyThing"),
])
def test_mistakes_in_a_scenario(scenario, message):
    with pytest.raises(SpecError) as raised:
        spec(scenario={"a": scenario})
    assert str(raised.value) == message
