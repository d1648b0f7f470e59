"""What changes from step to step: DDP's parameters, and the set of those with a gradient (static_graph takes it to be constant)."""

from ddplint.evidence import Change, Stray
from ddplint.views.scenario import ScenarioView


def took_place(stray: Stray, change: Change) -> bool:
    """Whether a parameter that was made after the wrap stands where another was replaced or removed."""
    if stray.kind != "created-later" or change.what not in ("identity", "removed"):
        return False
    module = change.parameter.rpartition(".")[0]
    return stray.name == change.parameter or (change.what == "removed" and module != "" and stray.name.startswith(f"{module}."))


def changed_set(scenario: ScenarioView) -> tuple[list[str], list[int], list[int]]:
    """(parameters, steps, ranks): where the set of gradients is not that of the rank's first step.

    A step that failed in backward counts with the set that its graph would have given.
    """
    names, steps, ranks = set(), set(), set()
    for rank in scenario.ranks:
        seen = [(step.step, _set_of(scenario, rank.rank, step.step)) for step in rank.steps]
        seen = [(step, used) for step, used in seen if used is not None]
        for step, used in seen[1:]:
            if used != seen[0][1]:
                names |= used ^ seen[0][1]
                steps.add(step)
                ranks.add(rank.rank)
    return scenario.names_of(sorted(names)), sorted(steps), sorted(ranks)


def _set_of(scenario: ScenarioView, rank: int, step: int) -> set[int] | None:
    if (rank, step) in scenario.use.uses:
        return set(scenario.use.used_at(rank, step))
    reach = scenario.graphs.at.get((rank, step))
    if reach is None or not reach.total or reach.graph.opaque:
        return None
    return {i for i, p in enumerate(scenario.model.parameters) if reach.total >> i & 1 and p.trainable}
