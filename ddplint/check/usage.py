"""The cube of use: parameter x scenario x rank -> the share of steps in which there was a gradient."""

import itertools

from ddplint.evidence import NONFINITE, NONZERO, UNSEEN, ZERO
from ddplint.views import RunView, ScenarioView

GRADIENT = ZERO + NONZERO + NONFINITE
Shares = list[float | None]


def usage(run: RunView) -> dict[str, dict[str, Shares]]:
    """Frozen parameters are left out; None stands where a rank's gradients were not observed.

    Equal cells share one list: do not change them.
    """
    cube: dict[str, dict[str, Shares]] = {}
    for _, group in itertools.groupby(run.scenarios, lambda scenario: scenario.seen.model):
        scenarios = list(group)
        names = [scenario.name for scenario in scenarios]
        cells = zip(*map(_cells, scenarios), strict=True)
        for parameter, row in zip(scenarios[0].model.parameters, cells, strict=True):
            if parameter.trainable:
                cube.setdefault(parameter.name, {}).update(zip(names, row, strict=True))
    return cube


def _cells(scenario: ScenarioView) -> list[Shares]:
    """Per parameter. There may be a million cells in all, few of which are different."""
    ranks = [rank.rank for rank in scenario.ranks]
    uses = scenario.use.uses
    if not uses:
        return [[None] * len(ranks)] * len(scenario.model.parameters)
    line = {use: i for i, use in enumerate(dict.fromkeys(uses.values()))}
    lines: dict[int, list[int]] = {rank: [] for rank in ranks}
    for (rank, _), use in uses.items():
        lines[rank].append(line[use])
    columns = list(zip(*line, strict=True))
    known = {column: [_share([column[i] for i in lines[rank]]) for rank in ranks] for column in set(columns)}
    return list(map(known.__getitem__, columns))


def _share(states: list[str]) -> float | None:
    seen = [state for state in states if state != UNSEEN]
    return sum(state in GRADIENT for state in seen) / len(seen) if seen else None
