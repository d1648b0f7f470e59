"""A model's modules at the depth that a picture has room for."""

import functools
import math
from collections.abc import Iterable

from ddplint.evidence import Graph, Model, RankSeen, ScenarioSeen
from ddplint.report import Box

BOXES = 60            # modules in a graph
ROWS = 24             # modules in the ledger
COLUMNS = 400         # modules in the plot by depth


class Parts:
    """Everything about a model that its scenarios share."""

    def __init__(self, model: Model):
        self.model, self.root = model, model.type
        self.owners = [parameter.module or self.root for parameter in model.parameters]
        self.boxes = levels(self.owners, BOXES)

    @functools.cached_property
    def modules(self) -> list[Box]:
        """The modules as boxes whose state is still to be found, in the order of their parameters."""
        types = {module.name or self.root: module.type for module in self.model.modules}
        found: dict[str, Box] = {}
        for owner, parameter in zip(self.owners, self.model.parameters, strict=True):
            name = self.boxes[owner]
            box = found.setdefault(name, Box(name, "module", title=types.get(name, "")))
            box.parameters, box.elements = box.parameters + 1, box.elements + parameter.numel
        return list(found.values())

    @functools.cached_property
    def trainable(self) -> dict[str, list[str]]:
        """Box -> the names of its trainable parameters."""
        found: dict[str, list[str]] = {box.name: [] for box in self.modules}
        for owner, parameter in zip(self.owners, self.model.parameters, strict=True):
            found[self.boxes[owner]] += [parameter.name] * parameter.trainable
        return found

    @functools.cached_property
    def rows(self) -> dict[str, int]:
        """Row of the ledger -> the bitset of its trainable parameters."""
        return {name: sum(1 << i for i in positions) for name, positions in self._trainable(ROWS).items()}

    @functools.cached_property
    def columns(self) -> dict[str, list[int]]:
        """Column of the plot -> the positions of its trainable parameters."""
        return self._trainable(COLUMNS)

    def _trainable(self, most: int) -> dict[str, list[int]]:
        cut = levels(self.owners, most)
        groups: dict[str, list[int]] = {}
        for i, parameter in enumerate(self.model.parameters):
            if parameter.trainable:
                groups.setdefault(cut[self.owners[i]], []).append(i)
        return groups


def levels(names: Iterable[str], most: int) -> dict[str, str]:
    """Module -> the module that stands for it when at most ``most`` are drawn: names cut at the deepest depth that fits.

    Where even the top has more, neighbours are drawn as one: ``0 ... 15``.
    """
    names = list(dict.fromkeys(names))
    deepest = max((name.count(".") + 1 for name in names), default=1)
    for depth in range(deepest, 0, -1):
        cut = {name: ".".join(name.split(".")[:depth]) for name in names}
        if len(set(cut.values())) <= most:
            return cut
    tops = list(dict.fromkeys(cut.values()))
    size = math.ceil(len(tops) / most)
    runs = [tops[i:i + size] for i in range(0, len(tops), size)]
    label = {top: run[0] if len(run) == 1 else f"{run[0]} ... {run[-1]}" for run in runs for top in run}
    return {name: label[top] for name, top in cut.items()}


def distinct(seen: ScenarioSeen) -> list[RankSeen]:
    """The ranks that do not share what another one saw."""
    return [rank for rank in seen.ranks if rank.same_as is None]


def graphs(seen: ScenarioSeen) -> list[Graph]:
    """Each different graph of a scenario once, over all ranks and steps."""
    found: list[Graph] = []
    for graph in (graph for rank in distinct(seen) for graph in rank.graphs):
        if not any(other is graph or other == graph for other in found):
            found.append(graph)
    return found
