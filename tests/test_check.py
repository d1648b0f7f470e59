"""The judge: precedence, grouping, acceptances, the checklist's verdicts, settings, usage, exit status."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddplint.check import check
from ddplint.check.globs import Globs
from ddplint.errors import SpecError
from ddplint.evidence import Evidence, Place
from ddplint.report import BROKEN, FAIL, NOT_CHECKED, PASS
from ddplint.rules import Problem, catalogue, rule
from ddplint.spec import Acceptance, Item, Judgement, RuleSetting
from ddplint.views import ParameterView, RunView, ScenarioView, TermView

TESTS = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("build", TESTS / "cases" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)

HEADLESS = {      # a head whose output feeds no loss, as DDP sees it
    "parameters": {"backbone.weight": [3, 3], "seg.weight": [8, 4], "seg.bias": [1]},
    "use": [["1..", None], ["1..", None]],
    "outputs": {"cls": {"behind": ["backbone.weight"], "terms": ["ce"]}, "seg": {"behind": "all"}},
    "terms": {"ce": {"reach": ["backbone.weight"]}},
    "calls": {"": 1, "backbone": 1, "seg": 1},
    "ranks": {rank: {"failure": {"kind": "raised", "phase": "forward", "step": 1, "type": "RuntimeError",
                                 "message": "Expected to have finished reduction in the prior iteration"}} for rank in (0, 1)},
    "scenario": {"outcome": {"outcome": "error", "ranks": [0, 1], "step": 1, "phase": "forward", "message": "Expected to"}},
}
HEALTHY = {"parameters": {"a.weight": [2, 2], "b.weight": [2]}, "use": [["11", "11"], ["11", "11"]], "calls": {"a": 1, "b": 1},
           "outputs": {"out": {"behind": "all", "terms": ["mse"]}}, "terms": {"mse": {"reach": "all", "value": 1.0, "weight": 1.0}}}


def judge(case: dict, *items: Item, accept=(), fail_on="error", **rules):
    judgement = Judgement(rules={name.replace("_", "-"): setting for name, setting in rules.items()}, checklist=items,
                          accept=tuple(accept), fail_on=fail_on)
    return check(build.evidence(case), judgement)


# ---------------------------------------------------------------------- precedence


def test_one_fault_is_told_once_and_the_rest_is_counted():
    report = judge(HEADLESS)
    assert [finding.rule for finding in report.findings] == ["unused-parameter"]
    assert report.findings[0].outputs == ["seg"]
    assert report.findings[0].explains == {"rank-failure": 2 - 1, "unused-output": 1}
    assert report.exit_status == 1


def test_a_dropped_term_explains_its_parameters_and_outputs():
    report = judge({**HEADLESS, "terms": {"ce": {"reach": ["backbone.weight"]}, "dice": {"reach": "all", "in_total": False}},
                    "outputs": {"cls": {"behind": ["backbone.weight"], "terms": ["ce"]}, "seg": {"behind": "all", "terms": ["dice"]}}})
    assert [(f.rule, f.terms, f.outputs, f.parameters) for f in report.findings] == [
        ("dropped-loss-term", ["dice"], ["seg"], ["seg.weight", "seg.bias"])]
    assert report.findings[0].explains == {"rank-failure": 1, "unused-parameter": 2}


def test_where_one_line_drops_all_terms_the_loss_tells_it_once():
    def report_of(line_of_aux):
        places = {"ce": 9, "aux": line_of_aux}
        causes = {f"term:{name}": {"kind": "term-not-in-total", "text": "copied", "operation": "tensor", "place": {"file": "loss.py", "line": line}}
                  for name, line in places.items()}
        return judge({"parameters": {"a.weight": [2]}, "use": [["."], ["."]], "scenario": {"causes": causes},
                      "outputs": {"out": {"behind": "all", "terms": ["ce", "aux"]}},
                      "terms": {name: {"reach": "all", "in_total": False, "value": 1.0} for name in places}})
    told = report_of(9).findings
    assert [finding.rule for finding in told] == ["loss-without-grad"]
    assert told[0].terms == ["aux", "ce"]
    assert told[0].explains["dropped-loss-term"] == 2
    assert [(finding.rule, finding.terms) for finding in report_of(12).findings] == \
        [("loss-without-grad", ["aux", "ce"]), ("dropped-loss-term", ["aux"])]


def test_a_rule_that_is_off_explains_nothing():
    report = judge(HEADLESS, unused_parameter=RuleSetting(severity="off"))
    assert [finding.rule for finding in report.findings] == ["unused-output"]


def test_a_failure_that_no_rule_names_is_told():
    report = judge({**HEALTHY, "use": [["11", None], ["11", None]], "ranks": HEADLESS["ranks"]})
    assert [(f.rule, f.ranks) for f in report.findings] == [("rank-failure", [0, 1])]


@pytest.mark.parametrize(("message", "step", "told"), [
    ("linalg.svd: the input matrix contained non-finite values", 1, ["nonfinite-gradient"]),
    ("the total norm is non-finite, so it cannot be clipped", 0, ["nonfinite-gradient"]),
    ("no such file", 1, ["nonfinite-gradient", "rank-failure"]),
])
def test_an_exception_about_values_that_are_not_finite_is_told_by_what_made_them(message, step, told):
    failure = {"kind": "raised", "phase": "forward", "step": step, "type": "RuntimeError", "message": message}
    report = check(build.evidence({"parameters": {"a.weight": [2]}, "use": [["!"], ["1"]], "ranks": {0: {"failure": failure}},
                                   "scenario": {"outcome": {"outcome": "error", "ranks": [0], "step": step, "message": message}}}),
                   Judgement(rules={"gradient-flow": RuleSetting(severity="off")}))
    assert sorted(f.rule for f in report.findings if f.severity == "error") == told


def test_a_hang_is_explained_by_the_rank_that_raised():
    ranks = {0: {"failure": {"kind": "hung", "phase": "backward", "step": 0}},
             1: {"failure": {"kind": "raised", "phase": "terms", "step": 0, "type": "KeyError", "message": "'mask'"}}}
    report = judge({**HEALTHY, "use": [[None], [None]], "ranks": ranks})
    assert [(f.rule, f.message) for f in report.findings] == [("rank-failure", "run: rank 1 raised KeyError in terms, step 0: 'mask'")]


def test_every_rule_has_its_place_among_the_others():
    order = sorted(catalogue().values(), key=lambda rule: -rule.specific)
    names = [found.name for found in order]
    for first, second in [("dropped-loss-term", "checkpoint-conflict"), ("checkpoint-conflict", "severed-graph"),
                          ("severed-graph", "rank-divergent-usage"), ("rank-divergent-usage", "varying-usage"),
                          ("varying-usage", "unused-parameter"), ("unused-parameter", "unused-output"),
                          ("unused-output", "uncalled-module"), ("uncalled-module", "shared-parameter-coverage"),
                          ("shared-parameter-coverage", "find-unused-parameters-needed"), ("ranks-diverge", "rank-failure")]:
        assert names.index(first) < names.index(second)


# ---------------------------------------------------------------------- grouping


def test_errors_come_before_warnings_and_accepted_ones_last():
    case = {**HEADLESS, "use": [["0..", "0..", "0.."], ["0..", "0..", "0.."]], "ranks": {}}
    report = judge(case, accept=[Acceptance("unused-parameter", "seg.*", "later")])
    assert [(f.rule, f.severity, f.accepted) for f in report.findings] == [
        ("zero-gradient", "warning", None), ("unused-parameter", "error", "later")]


def test_the_place_of_a_finding_without_a_line_is_its_modules_class():
    evidence = build.evidence(HEADLESS)
    next(m for m in evidence.models[0].modules if m.name == "seg").place = Place("net.py", 4)
    assert check(evidence, Judgement()).findings[0].place.line == 4


def test_fingerprints_do_not_depend_on_words_or_lines():
    cause = {"causes": {"parameter:seg.weight": {"kind": "dead-end", "text": "a", "place": {"file": "net.py", "line": 1}}}}
    first = judge({**HEADLESS, "scenario": {"causes": {}}}, unused_output=RuleSetting(severity="off"))
    cause["causes"]["parameter:seg.bias"] = {**cause["causes"]["parameter:seg.weight"]}
    moved = json.loads(json.dumps(cause).replace('"line": 1', '"line": 7'))
    one, two = judge({**HEADLESS, "scenario": cause}), judge({**HEADLESS, "scenario": moved})
    assert one.findings[0].cause.place.line != two.findings[0].cause.place.line
    assert one.findings[0].fingerprint == two.findings[0].fingerprint == first.findings[0].fingerprint
    assert len(one.findings[0].fingerprint) == 16


names = st.lists(st.from_regex(r"[ab](\.[cd0-3]){0,2}\.(weight|bias)", fullmatch=True), min_size=1, max_size=12, unique=True)


@settings(max_examples=60, deadline=None)
@given(names, st.data())
def test_grouping_loses_and_invents_nothing(parameters, data):
    uses = data.draw(st.lists(st.text("1.", min_size=len(parameters), max_size=len(parameters)), min_size=1, max_size=3))
    case = {"parameters": {name: [2] for name in parameters}, "scenarios": {f"s{i}": {"use": [[use]]} for i, use in enumerate(uses)}}
    report = judge(case, **{name.replace("-", "_"): RuleSetting(severity="off") for name in catalogue() if name != "unused-parameter"})
    told = [(scenario, name) for finding in report.findings for scenario in finding.scenarios for name in finding.parameters]
    assert sorted(told) == sorted((f"s{i}", n) for i, use in enumerate(uses) for n, u in zip(parameters, use, strict=True) if u == ".")
    for finding in report.findings:
        assert finding.message.startswith(finding.group)
        assert finding.elements == 2 * len(finding.parameters)


@settings(max_examples=60, deadline=None)
@given(st.from_regex(r"[ab*?.\[\]]{1,8}", fullmatch=True), st.from_regex(r"[ab.\[\]]{1,8}", fullmatch=True))
def test_globs_fit_what_fnmatch_fits_and_what_is_equal(pattern, name):
    import fnmatch
    assert Globs([pattern]).matches(name) == (fnmatch.fnmatchcase(name, pattern) or pattern == name)
    assert Globs([]).matches(name)


# ---------------------------------------------------------------------- acceptances


def test_an_accepted_finding_does_not_fail_and_shows_its_reason():
    case = {**HEADLESS, "ranks": {}, "scenario": {}}
    report = judge(case, Item("trains", rules=("unused-parameter",)), Item("outputs", rules=("unused-output",)),
                   accept=[Acceptance("unused-parameter", "seg.*", "old checkpoints")])
    assert report.exit_status == 0
    assert [finding.accepted for finding in report.findings] == ["old checkpoints"]
    assert [item.verdict for item in report.items] == [PASS, PASS]


def test_who_accepts_a_finding_has_not_accepted_that_the_job_dies():
    report = judge(HEADLESS, accept=[Acceptance("unused-parameter", "seg.*", "old checkpoints")])
    assert [(f.rule, f.accepted) for f in report.findings] == [("rank-failure", None), ("unused-parameter", "old checkpoints")]
    assert report.exit_status == 1


def test_an_acceptance_that_matched_nothing_is_told():
    report = judge(HEALTHY, accept=[Acceptance("unused-parameter", "pooler.*", "old")])
    assert report.unmatched_acceptances == ["unused-parameter pooler.*"]


def test_an_acceptance_may_take_a_part_of_a_group():
    report = judge({**HEADLESS, "ranks": {}}, accept=[Acceptance("unused-parameter", "*.bias", "who cares")])
    assert [(f.parameters, f.accepted) for f in report.findings] == [(["seg.weight"], None), (["seg.bias"], "who cares")]


# ---------------------------------------------------------------------- rules and their settings


def test_severity_and_ignore_from_yaml():
    report = judge(HEADLESS, fail_on="error", unused_parameter=RuleSetting(severity="warning", ignore=("*.bias",)),
                   unused_output=RuleSetting(severity="off"))
    assert [(f.rule, f.severity, f.parameters) for f in report.findings] == [("unused-parameter", "warning", ["seg.weight"])]
    assert report.exit_status == 0


@pytest.mark.parametrize("fail_on, status", [("error", 0), ("warning", 1), ("note", 1)])
def test_fail_on(fail_on, status):
    case = {**HEALTHY, "ddp": {"find_unused_parameters": True}}
    report = judge(case, fail_on=fail_on)
    assert [(f.rule, f.severity) for f in report.findings] == [("find-unused-parameters-needless", "warning")]
    assert (report.exit_status, report.fail_on) == (status, fail_on)


def test_no_evidence_cannot_be_judged():
    assert check(Evidence({}), Judgement()).exit_status == 2


@rule(severity="warning", checks="gradients")
def many_elements(parameter: ParameterView, *, most: int = 3):
    """A house rule."""
    if parameter.numel > most:
        return Problem(f"more than {most} elements")


@rule
def bursts(scenario: ScenarioView):
    """A rule that raises."""
    raise KeyError("boom")


def test_a_house_rule_works_like_a_shipped_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_rules", sys.modules[__name__])
    report = judge(HEALTHY, Item("small", rules=("size",)),
                   size=RuleSetting(target="my_rules.many_elements", options={"most": 2}, severity="error"))
    assert [(f.rule, f.severity, f.message, f.parameters) for f in report.findings] == [
        ("size", "error", "a: more than 2 elements", ["a.weight"])]
    assert (report.items[0].verdict, report.items[0].examined) == (FAIL, 2)


def test_a_rule_that_raises_breaks_its_item_and_the_judgement(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_rules", sys.modules[__name__])
    report = judge(HEALTHY, Item("mine", rules=("bursts",)), Item("outputs", rules=("unused-output",)),
                   bursts=RuleSetting(target="my_rules.bursts"))
    assert report.exit_status == 2
    assert report.broken == {"bursts": "KeyError: 'boom'"}
    assert [(item.verdict, item.because) for item in report.items] == [(BROKEN, "bursts: KeyError: 'boom'"), (PASS, None)]


def test_an_option_that_does_not_exist_is_a_mistake_in_the_spec():
    with pytest.raises(SpecError, match="rules.zero-gradient.step: rule 'zero-gradient' has no option 'step'"):
        judge(HEALTHY, zero_gradient=RuleSetting(options={"step": 2}))


# ---------------------------------------------------------------------- the checklist


def test_items_pass_fail_and_say_who_tells():
    report = judge(HEADLESS, Item("outputs", "Every output", ("unused-output",)), Item("trains", rules=("unused-parameter",)),
                   Item("finite", rules=("nonfinite-gradient", "nonfinite-loss")))
    assert [(i.id, i.title, i.verdict, i.because) for i in report.items] == [
        ("outputs", "Every output", FAIL, "see unused-parameter"),
        ("trains", "Trains", FAIL, "unused-parameter: seg.weight, seg.bias"),
        ("finite", "Finite", PASS, None)]
    assert report.items[1].examined == 3


def test_what_was_not_seen_did_not_pass():
    case = {**HEALTHY, "scenarios": {"good": {}, "dies": {"use": [[None], [None]], "outputs": {}, "terms": {}, "ranks": {
        0: {"failure": {"kind": "raised", "phase": "forward", "step": 0, "type": "ValueError", "message": "oh"}}}}}}
    item = judge(case, Item("trains", rules=("unused-parameter",))).items[0]
    assert (item.verdict, item.because) == (NOT_CHECKED, "no backward ended: a rank raised in forward (in dies)")


def test_an_aspect_that_the_recorder_lacks_is_not_checked_with_its_reason():
    case = {**HEALTHY, "scenario": {"unknown": {"gradients": "simulated"}}}
    report = judge(case, Item("zero", rules=("zero-gradient",)))
    assert (report.items[0].verdict, report.items[0].because) == (NOT_CHECKED, "simulated")


def test_a_rule_that_is_off_is_not_checked():
    item = judge(HEALTHY, Item("x", rules=("unused-output",)), unused_output=RuleSetting(severity="off")).items[0]
    assert (item.verdict, item.because) == (NOT_CHECKED, "unused-output is switched off")


def test_what_the_model_has_nothing_of_is_told_apart_from_what_was_not_seen():
    items = judge(HEALTHY, Item("ties", rules=("shared-parameter-coverage",)),
                  Item("own", rules=("shared-parameter-coverage",), match=("head.*",)),
                  Item("off", rules=("unused-output",)), unused_output=RuleSetting(severity="off")).items
    assert [(item.verdict, item.absent) for item in items] == [(NOT_CHECKED, True), (NOT_CHECKED, False), (NOT_CHECKED, False)]


def test_match_and_scenarios_narrow_an_item():
    case = {**HEADLESS, "scenarios": {"text": {}, "image": {}}}
    items = judge(case, Item("backbone", rules=("unused-parameter",), match=("backbone.*",)),
                  Item("seg", rules=("unused-parameter",), match=("seg.*",), scenarios=("image",)),
                  Item("none", rules=("unused-parameter",), match=("pooler.*",)),
                  Item("later", rules=("unused-parameter",), scenarios=("night",))).items
    assert [(i.verdict, i.examined) for i in items] == [(PASS, 2), (FAIL, 2), (NOT_CHECKED, 0), (NOT_CHECKED, 0)]
    assert [i.because for i in items[2:]] == ["nothing matches pooler.*", "nothing to look at in night"]


def test_an_items_severity_counts_for_what_it_matches():
    case = {**HEALTHY, "use": [["01", "01", "01"]]}
    report = judge(case, Item("text", rules=("zero-gradient",), match=("a.*",), severity="error"))
    assert [(f.rule, f.severity) for f in report.findings] == [("zero-gradient", "error")]
    assert report.exit_status == 1


def test_the_shipped_checklist_names_every_rule_and_asks_the_five_questions_first():
    import yaml
    items = yaml.safe_load((TESTS.parent / "configs" / "checklist" / "recommended.yaml").read_text())
    assert list(items)[:5] == ["outputs-used", "branches-taken", "losses-arrive", "shared-uses-count", "checkpoints-hold"]
    assert {name for item in items.values() for name in item["rules"]} == set(catalogue())


# ---------------------------------------------------------------------- usage, settings, determinism


def test_usage_is_the_share_of_steps_by_rank():
    case = {"parameters": {"a": [2], "b": [2], "frozen": [1]}, "frozen": ["frozen"], "use": [["11-", "1.-"], ["1.-", "1.-"]],
            "ddp": {"find_unused_parameters": True}}
    assert judge(case).usage == {"a": {"typical": [1.0, 1.0]}, "b": {"typical": [0.5, 0.0]}}


def test_usage_of_a_scenario_that_saw_nothing_is_unknown():
    assert judge({"parameters": {"a": [2]}}).usage == {"a": {"typical": [None, None]}}


@pytest.mark.parametrize("use, value, because", [
    ([["11", "11"]], False, "every parameter got a gradient in all 2 steps of 1 scenario (all ranks)"),
    ([["11", "1."]], True, "b.weight gets a gradient in some steps and none in others"),
    ([["1.", "1."]], False,
     "1 parameter (b.weight) never gets a gradient: mend or freeze that; every other one does in every step"),
])
def test_the_flag_that_fits(use, value, because):
    setting = judge({**HEALTHY, "use": use, "tried": {"find_unused_parameters=true": "ran"}}).settings["find_unused_parameters"]
    assert (setting.value, setting.because, setting.tried) == (value, because, "ran" if value else None)


def test_settings_speak_only_to_what_was_seen():
    assert judge({"parameters": {"a": [2]}}).settings == {}
    found = judge({**HEALTHY, "model": {"buffers": {"mean": [2]}}}).settings
    assert sorted(found) == ["find_unused_parameters", "gradient_as_bucket_view", "static_graph"]


def test_scenarios_and_spec_are_passed_on():
    report = judge(HEADLESS)
    assert [(s.name, s.outcome, s.ranks, s.step) for s in report.scenarios] == [("typical", "error", [0, 1], 1)]
    assert report.spec["model"] == "net.Net"


def test_the_report_does_not_depend_on_the_hash_seed():
    code = """if True:
        import importlib.util, json, sys
        from ddplint.evidence_file import to_plain
        spec = importlib.util.spec_from_file_location('t', sys.argv[1])
        t = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(t)
        print(json.dumps(to_plain(t.judge({**t.HEADLESS, 'scenarios': {'x': {}, 'y': {'use': [['11.'], ['1..']]}}}))))
    """
    reports = {subprocess.run([sys.executable, "-c", code, __file__], text=True, capture_output=True, check=True, cwd=TESTS.parent,
                              env={"PYTHONHASHSEED": seed, "PATH": ""}).stdout for seed in ("1", "2", "3")}
    assert len(reports) == 1


def test_views_hide_bitsets():
    run = RunView(build.evidence(HEADLESS))
    term: TermView = run.scenarios[0].terms[0]
    assert (term.name, term.parameters, term.stranded) == ("ce", ["backbone.weight"], [])
    assert run.scenarios[0].outputs[1].parameters == ["backbone.weight", "seg.weight", "seg.bias"]
