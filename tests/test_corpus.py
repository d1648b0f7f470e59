"""The corpus of real faults: found with their subjects, the line, DDP's outcome; nothing on the healthy ones."""

from collections.abc import Iterator

import pytest

from tests.conftest import TABLES
from tests.corpus_score import CASES, HEADER, Score, score

pytestmark = [pytest.mark.corpus, pytest.mark.usefixtures("kept_ranks")]


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, Score]]:
    """Scores so far, printed as a table at the end of the session."""
    scores: dict[str, Score] = {}
    yield scores
    request.config.stash[TABLES] += [HEADER, *(s.row for s in scores.values()), _summary(list(scores.values()))]


def _summary(scores: list[Score]) -> str:
    faults, lines = [s for s in scores if not s.healthy], [s.line for s in scores if s.line is not None]
    return (f"found {sum(s.found for s in faults)} of {len(faults)}, line {sum(lines)} of {len(lines)}, "
            f"ddp {sum(not s.outcomes for s in scores)} of {len(scores)}, "
            f"false errors {sum(len(s.false_errors) for s in scores)}")


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, table: dict[str, Score]) -> None:
    result = table[case] = score(case)
    assert not result.outcomes
    assert not result.false_errors
    assert result.healthy or result.found
    assert result.line is not False
