"""run.engine=simulate beside real DDP, and what it says where a simulation cannot know."""

from pathlib import Path
from typing import Any

import pytest

from ddplint.check import check
from ddplint.compose import parse
from ddplint.evidence import Evidence
from ddplint.evidence_file import from_json, to_json
from ddplint.record import record
from ddplint.report import Report
from ddplint.rules import catalogue

FOLDER = str(Path(__file__).parent)
X = {"x": {"shape": [3, 4]}}
TOKENS = {"tokens": {"shape": [2, 6], "integers": [0, 50]}, "scale": {"shape": [6], "uniform": [0.5, 1.5]}}


def lint(model: str, scenario: dict[str, Any], *, terms: str = "mean_loss", engine: str = "simulate", lint: list[str] | None = None,
         **more: Any) -> tuple[Evidence, Report]:
    run = {"world_size": 2, "steps": 3, "device": "cpu", "timeout": 60, "engine": engine, **more.pop("run", {})}
    plain = {"model": {"_target_": f"simulated_models.{model}"}, "loss": {"terms": {"_target_": f"simulated_models.{terms}"}},
             "scenario": scenario, "run": run, "checklist": {name: {"rules": [name]} for name in catalogue()}, **more}
    spec = parse(plain, folder=FOLDER, installed=list(catalogue()))
    evidence = record(spec)
    return evidence, check(evidence, spec.judgement)


def verdict(report: Report, rule: str) -> tuple[str, str | None]:
    return next((item.verdict, item.because) for item in report.items if item.id == rule)


def uses(evidence: Evidence) -> list[list[str]]:
    """Per rank and step; zero counts as a gradient, for that is what a simulation can see."""
    return [[step.use.replace("0", "1") for step in rank.steps] for rank in evidence.scenarios[0].ranks]


# ---------------------------------------------------------------------- beside the real engine


@pytest.fixture(scope="module")
def both() -> tuple[Evidence, Evidence]:
    scenario = {"a": {"batch": TOKENS}}
    return tuple(lint("Everything", scenario, terms="token_loss", engine=engine, ddp={"static_graph": True})[0]
                 for engine in ("local", "simulate"))


def test_the_same_gradients_outputs_terms_and_uses_are_seen(both) -> None:
    real, simulated = both
    assert uses(simulated) == uses(real)
    mine, theirs = simulated.scenarios[0].ranks[0], real.scenarios[0].ranks[0]
    assert mine.graphs == theirs.graphs
    assert [s.weights for s in mine.steps] == [s.weights for s in theirs.steps]
    assert mine.events == theirs.events


def test_the_outcome_and_the_causes_are_the_same(both) -> None:
    real, simulated = both
    assert simulated.scenarios[0].outcome == real.scenarios[0].outcome
    assert simulated.scenarios[0].causes == real.scenarios[0].causes
    assert "parameter:spare.weight" in simulated.scenarios[0].causes


def test_a_model_on_the_meta_device_is_simulated_as_any_other(both) -> None:
    evidence, _ = lint("everything_on_meta", {"a": {"batch": TOKENS}}, terms="token_loss", ddp={"static_graph": True})
    assert uses(evidence) == uses(both[1])


@pytest.mark.parametrize(("ddp", "outcome"), [({}, "error"), ({"find_unused_parameters": True}, "ok"), ({"static_graph": True}, "ok")])
def test_what_each_flag_would_do(ddp: dict, outcome: str) -> None:
    scenario = {"skips": {"batch": X}}
    evidence, _ = lint("Optional", scenario, ddp=ddp, run={"causes": False})
    assert evidence.scenarios[0].outcome.outcome == outcome


def test_ranks_that_differ_in_the_last_step_leave_the_others_waiting() -> None:
    scenario = {"with": {"batch": {**X, "extra": {"shape": [3, 4]}}}, "without": {"batch": X},
                "late": {"sequence": ["with", "with", "without"]}, "mixed": {"ranks": ["with", "late"]}}
    seen = next(s for s in lint("Optional", scenario, run={"causes": False})[0].scenarios if s.name == "mixed")
    assert (seen.outcome.outcome, seen.outcome.ranks, seen.outcome.step) == ("hang", [0], 2)


def test_a_term_with_weight_zero_is_known_without_numbers() -> None:
    evidence, report = lint("Optional", {"a": {"batch": X}}, loss={
        "terms": {"_target_": "simulated_models.one_term_fewer"}, "total": {"_target_": "simulated_models.only_loss"}})
    assert evidence.scenarios[0].ranks[0].steps[0].weights == {"loss": 1.0, "other": 0.0}
    assert verdict(report, "dropped-loss-term")[0] == "fail"


# ---------------------------------------------------------------------- what a simulation cannot know


def test_what_needs_numbers_is_not_checked() -> None:
    _, report = lint("Logged", {"a": {"batch": X}})
    for rule in ("zero-gradient", "nonfinite-gradient", "nonfinite-loss", "ranks-diverge", "gradient-flow", "dead-activation"):
        assert verdict(report, rule) == ("not checked", "a simulation knows shapes, not numbers"), rule
    assert verdict(report, "unused-parameter") == ("pass", None)
    assert not [finding for finding in report.findings if finding.severity == "error"]


def test_a_branch_that_changes_nothing_is_only_noted() -> None:
    evidence, _ = lint("Logged", {"a": {"batch": X}})
    assert evidence.scenarios[0].outcome.outcome == "ok"
    (note,) = [n for n in evidence.scenarios[0].ranks[0].notes if n.startswith("simulated: ")]
    assert "simulated_models.py:" in note and "either answer gives the same gradients" in note


GATE = {"a": {"batch": {**X, "gate": {"shape": [4], "uniform": [1, 2]}}}}


def test_a_branch_that_decides_names_its_line_and_the_tensor_that_would_settle_it() -> None:
    evidence, report = lint("Skipping", GATE)
    seen = evidence.scenarios[0]
    assert seen.outcome.outcome == "unknown"
    assert "x = self.low(x) if gate.mean() > 0 else x" in seen.outcome.message
    assert seen.outcome.message.endswith("run.real: [batch.gate] gives it real numbers")
    assert seen.ranks[0].steps[0].use == "??11"
    assert verdict(report, "unused-parameter") == ("not checked", seen.outcome.message)
    assert not [f for f in report.findings if f.severity == "error"]


def test_what_both_arms_agree_on_is_certain() -> None:
    """Either half stays unused, which DDP refuses."""
    evidence, _ = lint("Gated", GATE)
    assert evidence.scenarios[0].outcome.outcome == "error"
    assert evidence.scenarios[0].ranks[0].steps[0].use == "????11"


def test_a_real_tensor_settles_the_branch() -> None:
    evidence, report = lint("Gated", GATE, run={"real": ["batch.gate"]})
    assert evidence.scenarios[0].outcome.outcome == "error"
    assert evidence.scenarios[0].ranks[0].steps[0].use == "..1111"
    (finding,) = [f for f in report.findings if f.rule == "unused-parameter"]
    assert finding.parameters == ["low.weight", "low.bias"]


# ---------------------------------------------------------------------- many ranks


@pytest.fixture(scope="module")
def thousand() -> tuple[Evidence, Report]:
    scenario = {"with": {"batch": {**X, "extra": {"shape": [3, 4]}}}, "without": {"batch": X},
                "mixed": {"ranks": ["without", *["with"] * 1023]}}
    evidence, report = lint("Optional", scenario, run={"world_size": 1024}, ddp={"find_unused_parameters": True})
    evidence.scenarios = evidence.scenarios[-1:]
    return evidence, report


def test_a_rank_is_simulated_once_for_each_input(thousand) -> None:
    ranks = thousand[0].scenarios[0].ranks
    assert [rank.rank for rank in ranks] == list(range(1024))
    assert [rank.same_as for rank in ranks] == [None, None, *[1] * 1022]
    assert ranks[1023].steps is ranks[1].steps
    assert (ranks[0].steps[0].use, ranks[1].steps[0].use) == ("11..", "1111")


def test_the_file_holds_equal_ranks_once(thousand) -> None:
    text = to_json(thousand[0])
    assert len(text) < 60_000
    again = from_json(text)
    assert again.scenarios == thousand[0].scenarios
    assert again.scenarios[0].ranks[1023].steps is again.scenarios[0].ranks[1].steps


def test_the_report_names_the_one_rank_that_differs(thousand) -> None:
    (finding,) = [f for f in thousand[1].findings if f.rule == "rank-divergent-usage"]
    assert (finding.parameters, finding.ranks, finding.scenarios) == (["extra.weight", "extra.bias"], [0], ["mixed"])
