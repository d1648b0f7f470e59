"""The corpus under both engines: the simulation says what real DDP showed, or that it did not check."""

from typing import Any

import pytest

from ddplint.check import check
from ddplint.compose import parse
from ddplint.record import record
from ddplint.report import Finding, Report
from ddplint.rules import catalogue
from tests.corpus_score import CASES, FAILED, FOLDER, container, facts_of

pytestmark = [pytest.mark.corpus, pytest.mark.usefixtures("kept_ranks")]
DRAWN = ("layerdrop", "stochastic_depth")
"""Cases in which every run draws anew what is used: there only the healthy must stay clean."""


def judged(case: str, engine: str) -> Report:
    facts = facts_of(case)
    plain = container(case, facts) | {"checklist": {name: {"rules": [name]} for name in catalogue()}}
    plain["run"] |= {"engine": engine}
    spec = parse(plain, folder=str(FOLDER), installed=list(catalogue()))
    return check(record(spec), spec.judgement)


def essence(finding: Finding) -> tuple[Any, ...]:
    cause = finding.cause
    place = (cause.place.file, cause.place.line) if cause and cause.place else None
    return (finding.rule, tuple(sorted(finding.parameters)), tuple(sorted(finding.outputs)), tuple(sorted(finding.terms)),
            cause.kind if cause else None, place)


@pytest.mark.parametrize("case", [case for case in CASES if not any(word in case for word in DRAWN)])
def test_both_engines(case: str) -> None:
    real, simulated = judged(case, "local"), judged(case, "simulate")
    for mine, theirs in zip(simulated.scenarios, real.scenarios, strict=True):
        assert mine.outcome in (theirs.outcome, "unknown") or {mine.outcome, theirs.outcome} <= set(FAILED), mine.name
    verdicts = {item.id: item.verdict for item in simulated.items}
    seen = {essence(finding) for finding in simulated.findings if finding.severity == "error"}
    known = {essence(finding) for finding in real.findings if finding.severity == "error"}
    assert seen <= known
    assert not {one for one in known - seen if verdicts[one[0]] != "not checked"}
