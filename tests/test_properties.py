"""Whatever evidence holds, and however it was edited: a verdict that was earned, or one clear error; nothing else."""

import copy
import fnmatch
import json
from pathlib import Path

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ddplint.check import check
from ddplint.check.globs import Globs
from ddplint.compose import parse_judgement
from ddplint.errors import DdplintError
from ddplint.evidence import (
    FROZEN,
    NONE,
    UNSEEN,
    Cause,
    Evidence,
    Failure,
    Model,
    Outcome,
    Parameter,
    Place,
    RankSeen,
    ScenarioSeen,
    StepSeen,
)
from ddplint.evidence.consistency import first_fault
from ddplint.evidence_file import from_json, merge, to_json, to_plain
from ddplint.render import FORMATS, render
from ddplint.rules import catalogue
from ddplint.spec import Judgement
from tests.cases.build import evidence as case_evidence

ROOT = Path(__file__).resolve().parent.parent
CHECKLIST = yaml.safe_load((ROOT / "configs/checklist/recommended.yaml").read_text())
JUDGEMENT = parse_judgement({"checklist": {k: v for k, v in CHECKLIST.items() if k != "defaults"}}, list(catalogue()))
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

# ------------------------------------------------------------------ evidence of every sort

NAMES = st.sampled_from(["a.weight", "a.bias", "b.0.weight", "b.1.weight", "b.1.norm.weight", "c"])
WORDS = st.text(max_size=8)
PLACES = st.none() | st.builds(Place, WORDS, st.integers(0, 9), WORDS, WORDS)
CAUSES = st.dictionaries(st.sampled_from(["parameter:c", "loss:", "ranks:"]), st.builds(Cause, WORDS, WORDS, PLACES), max_size=2)
FAILURES = st.builds(Failure, st.sampled_from(["raised", "exited", "killed", "hung"]), st.sampled_from(["import", "forward", "backward"]),
                     st.none() | st.integers(0, 2), st.sampled_from(["ValueError", "SIGKILL", ""]), WORDS,
                     collateral=st.booleans(), printed=st.lists(WORDS, max_size=2))


@st.composite
def ranks(draw, count: int, rank: int) -> RankSeen:
    states = st.text(alphabet=".01!-?", min_size=count, max_size=count)
    steps = [StepSeen(s, draw(st.sampled_from(["batch", "backward", "done"])), use=draw(st.just("") | states)) for s in range(draw(st.integers(0, 3)))]
    return RankSeen(rank, steps=steps, failure=draw(st.none() | FAILURES),
                    size=draw(st.just([]) | st.lists(st.floats(0, 9), min_size=count, max_size=count)))


@st.composite
def evidences(draw) -> Evidence:
    names = draw(st.lists(NAMES, min_size=1, unique=True))
    model = Model("Net", [Parameter(name, [2], "float32", draw(st.booleans()), name.rpartition(".")[0]) for name in names])
    scenarios = []
    for name in draw(st.lists(st.sampled_from(["s", "t", "u v"]), min_size=1, max_size=3, unique=True)):
        seen = ScenarioSeen(name, ranks=[draw(ranks(len(names), rank)) for rank in range(draw(st.integers(0, 3)))], causes=draw(CAUSES))
        failed = any(rank.failure for rank in seen.ranks)
        seen.outcome = Outcome(draw(st.sampled_from(["error", "hang", "crashed"] if failed else ["ok"])))
        scenarios.append(seen)
    return Evidence({"model": "net.Net", "world_size": 3, "steps": 3, "ddp": draw(st.sampled_from([{}, {"static_graph": True}]))}, [model], scenarios)


@FEW
@given(evidences())
def test_evidence_survives_the_way_to_disk_and_back(evidence):
    assert first_fault(evidence) is None
    again = from_json(to_json(evidence))
    assert to_plain(again) == to_plain(evidence)
    assert first_fault(again) is None
    assert check(again, JUDGEMENT) == check(evidence, JUDGEMENT)


@FEW
@given(evidences())
def test_what_was_not_seen_does_not_pass(evidence):
    report = check(evidence, JUDGEMENT)
    assert report.broken == {}
    stepped = [s for s in evidence.scenarios if any(step.use for rank in s.ranks for step in rank.steps)]
    verdicts = {item.id: item.verdict for item in report.items}
    if len(stepped) < len(evidence.scenarios):
        assert verdicts["gradients-arrive"] != "pass"
    own = [f for s in evidence.scenarios for rank in s.ranks if (f := rank.failure) and not f.collateral and f.kind != "hung"]
    assert report.exit_status == 1 or not own


# ------------------------------------------------------------------ grouping

@FEW
@given(evidences())
def test_grouping_loses_and_invents_no_name(evidence):
    report = check(evidence, JUDGEMENT)
    known = {parameter.name for parameter in evidence.models[0].parameters}
    for finding in report.findings:
        assert set(finding.parameters) <= known and len(set(finding.parameters)) == len(finding.parameters)
        assert set(finding.scenarios) <= {seen.name for seen in evidence.scenarios}
    named = {(s, p) for f in report.findings if f.rule == "unused-parameter" for s in f.scenarios for p in f.parameters}
    assert named == {(s.name, p.name) for s in evidence.scenarios for i, p in enumerate(evidence.models[0].parameters)
                     if p.trainable and _lacking(s, i)}


def _lacking(seen: ScenarioSeen, i: int) -> bool:
    """Wherever it was looked at while it was trainable, there was no gradient."""
    return {step.use[i] for rank in seen.ranks for step in rank.steps if step.use} - {UNSEEN, FROZEN} == {NONE}


@FEW
@given(evidences(), st.randoms(use_true_random=False))
def test_the_order_of_ranks_and_scenarios_in_a_file_changes_no_finding(evidence, chance):
    shuffled = copy.deepcopy(evidence)
    chance.shuffle(shuffled.scenarios)
    for seen in shuffled.scenarios:
        chance.shuffle(seen.ranks)
    assert _told(check(shuffled, JUDGEMENT)) == _told(check(evidence, JUDGEMENT))


def _told(report) -> list:
    return sorted((f.rule, f.severity, f.message, tuple(sorted(f.parameters)), tuple(sorted(f.scenarios))) for f in report.findings)


# ------------------------------------------------------------------ merging a sweep's evidence

@FEW
@given(st.lists(evidences(), min_size=1, max_size=3))
def test_a_merge_keeps_every_scenario_with_its_own_model(parts):
    before = [(to_plain(seen.ranks), part.models[seen.model].parameters) for part in parts for seen in part.scenarios]
    merged = merge(copy.deepcopy(parts))
    assert [(to_plain(seen.ranks), merged.models[seen.model].parameters) for seen in merged.scenarios] == before
    names = [seen.name for seen in merged.scenarios]
    assert len(set(names)) == len(names)
    assert first_fault(merged) is None
    assert to_plain(from_json(to_json(merged))) == to_plain(merged)


@FEW
@given(evidences())
def test_a_sweep_over_scenarios_says_what_one_job_says(evidence):
    jobs = [Evidence(evidence.spec, evidence.models, [seen]) for seen in evidence.scenarios]
    assert _told(check(merge(copy.deepcopy(jobs)), JUDGEMENT)) == _told(check(evidence, JUDGEMENT))


# ------------------------------------------------------------------ globs

PATTERN = st.text(alphabet="ab.*?[]!0", max_size=6)


@given(st.lists(PATTERN, max_size=4), st.text(alphabet="ab.0\n[", max_size=6))
def test_globs_are_fnmatch_and_a_name_matches_itself(patterns, name):
    expected = not patterns or name in patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    assert Globs(patterns).matches(name) is expected
    assert Globs([name]).matches(name)


# ------------------------------------------------------------------ evidence that was edited

CASES = [case for file in sorted((ROOT / "tests/cases").glob("*.yaml")) for case in yaml.safe_load(file.read_text())]
NASTY = st.sampled_from([None, True, 0, -1, 7, 2**70, 1.5, float("nan"), float("inf"), "", "x", "ff", "\x1b[31m", "\ud800", "1" * 50,
                         [], {}, [[]], ["a"], {"a": 1}, [None], "\u202e"])


def base(index: int) -> str:
    evidence = case_evidence(CASES[index])
    for seen in evidence.scenarios:
        if any(rank.failure for rank in seen.ranks) and seen.outcome.outcome == "ok":
            seen.outcome.outcome = "error"
    return to_json(evidence)


@st.composite
def edited(draw) -> str:
    """A valid file in which one to three values were removed, doubled or replaced."""
    body = json.loads(base(draw(st.integers(0, len(CASES) - 1))))
    for _ in range(draw(st.integers(1, 3))):
        owner, key = draw(st.sampled_from(list(_slots(body)) or [(None, None)]))
        assume(owner is not None)
        how = draw(st.sampled_from(["remove", "double", "replace", "replace"]))
        if how == "remove":
            del owner[key]
        elif how == "double" and isinstance(owner, list):
            owner.insert(key, copy.deepcopy(owner[key]))
        else:
            owner[key] = copy.deepcopy(draw(NASTY))
    return json.dumps(body)


def _slots(value):
    """Every (container, key) of a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _slots(value[key])


@settings(FEW, max_examples=400)
@given(edited())
def test_an_edited_file_is_refused_or_judged_and_every_format_can_tell_it(text):
    try:
        evidence = from_json(text)
        if first_fault(evidence) is not None:
            return
        report = check(evidence, Judgement(checklist=JUDGEMENT.checklist))
    except DdplintError as error:
        assert "\n" not in str(error) or "JSON" in str(error)
        return
    assert report.exit_status in (0, 1, 2)
    assert report.exit_status == 2 or not report.broken
    if all(seen.ranks == [] for seen in evidence.scenarios):
        assert all(item.verdict != "pass" for item in report.items)
    for name in [*FORMATS, "terminal", "plain"]:
        assert [c for c in render(report, name) if not (c.isprintable() or c == "\n")] == []
