"""The cube of use, collapsed for the eye: parameter x scenario x rank -> a few rows of modules."""

from dataclasses import dataclass
from itertools import repeat

from ddplint.render.text import ranges
from ddplint.report import Report

Shares = tuple[float | None, ...]
"""Per rank: the share of steps in which there was a gradient; None where that was not observed."""
UNTOLD: Shares = ()
ALWAYS, NEVER, UNSEEN = "always", "never", "not seen"


@dataclass(frozen=True)
class Row:
    """Parameters under one module whose use is the same in every scenario, on every rank."""

    name: str
    """The module they fill, or the parameter itself where it is one."""
    parameters: tuple[str, ...]
    cells: tuple[Shares, ...]
    """In the order of ``scenario_names``."""

    @property
    def always(self) -> bool:
        return all(share == 1 for cell in self.cells for share in cell)

    @property
    def label(self) -> str:
        return self.name if len(self.parameters) == 1 else f"{self.name}.* ({len(self.parameters):,})".lstrip(".")


def scenario_names(report: Report) -> list[str]:
    """The report's scenarios in their order, then any that only the cube knows."""
    names = dict.fromkeys(scenario.name for scenario in report.scenarios)
    for per_scenario in report.usage.values():
        names.update(dict.fromkeys(per_scenario))
    return [name for name in names if any(name in cells for cells in report.usage.values())]


def rows(report: Report) -> list[Row]:
    """The fewest rows that tell the whole cube: the highest modules within which all parameters agree."""
    scenarios = scenario_names(report)
    shares: dict[int, Shares] = {}      # by identity: of a million cells most are one object
    for cells in report.usage.values():
        shares.update((id(cell), tuple(cell)) for cell in cells.values() if id(cell) not in shares)
    shares[id(UNTOLD)] = UNTOLD
    cube = [(name, tuple(map(shares.__getitem__, map(id, map(cells.get, scenarios, repeat(UNTOLD))))))
            for name, cells in report.usage.items()]
    return _collapse(cube, 0) if cube else []


def _collapse(members: list[tuple[str, tuple[Shares, ...]]], depth: int) -> list[Row]:
    name, cells = members[0]
    if all(other == cells for _, other in members):
        prefix = ".".join(name.split(".")[:depth]) if len(members) > 1 else name
        return [Row(prefix, tuple(member for member, _ in members), cells)]
    depth = max(depth, _common_depth([member for member, _ in members]))
    groups: dict[tuple[str, bool], list] = {}
    for member in members:
        parts = member[0].split(".", depth + 1)
        # A parameter that stands at this depth itself is a group of its own.
        groups.setdefault((parts[depth], len(parts) > depth + 1), []).append(member)
    return [row for group in groups.values() for row in _collapse(group, depth + 1)]


def _common_depth(names: list[str]) -> int:
    """How many leading parts all names share, short of a whole name."""
    first, last = min(names).split("."), max(names).split(".")       # the two that differ most, in the order of text
    depth = 0
    while depth < min(len(first), len(last)) - 1 and first[depth] == last[depth]:
        depth += 1
    return depth


def word(share: float | None) -> str:
    if share is None:
        return UNSEEN
    return ALWAYS if share == 1 else NEVER if share == 0 else f"{share:.0%} of steps"


def cell_text(cell: Shares) -> str:
    """``always``, ``never``, ``67% of steps``, or what each rank saw: ``always on 0, never on 1``."""
    ranks_by_word: dict[str, list[int]] = {}
    for rank, share in enumerate(cell):
        ranks_by_word.setdefault(word(share), []).append(rank)
    if len(ranks_by_word) == 1:
        return next(iter(ranks_by_word))
    if not ranks_by_word:
        return UNSEEN
    return ", ".join(f"{what} on {ranges(ranks)}" for what, ranks in ranks_by_word.items())
