"""A layered drawing of a directed graph, top down: longest paths, dummy nodes, barycentres, pooled positions.

Pure geometry, no text: sizes go in, boxes and routes come out. 60 boxes take some 10 ms.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise

GAP_X, GAP_Y, LANE, LINE = 22.0, 46.0, 14.0, 760.0
SWEEPS = 8

Point = tuple[float, float]


@dataclass
class Drawing:
    width: float = 0.0
    height: float = 0.0
    centres: dict[Hashable, Point] = field(default_factory=dict)
    routes: dict[tuple[Hashable, Hashable], list[Point]] = field(default_factory=dict)
    """Edge -> from the lower side of its source, past every layer between, to the upper side of its target."""


def draw(sizes: dict[Hashable, tuple[float, float]], edges: list[tuple[Hashable, Hashable]]) -> Drawing:
    """Place every node of ``sizes`` (width, height). Edges from a node to itself, or that close a cycle, are turned."""
    edges = list(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    linked = {node for edge in edges for node in edge}
    alone = {node: size for node, size in sizes.items() if node not in linked}
    sizes = {node: size for node, size in sizes.items() if node in linked}
    forward = _acyclic(list(sizes), edges)
    layer = _layers(list(sizes), forward)
    rows, chains, widths = _with_dummies(sizes, forward, layer)
    order = _ordered(rows, chains)
    x = _across(order, chains, widths)
    drawing = _finish(sizes, edges, forward, order, chains, x, widths)
    _add_alone(drawing, alone)
    return drawing


def _add_alone(drawing: Drawing, sizes: dict[Hashable, tuple[float, float]]) -> None:
    """Nodes without edges, in lines below the rest."""
    limit = max(drawing.width, LINE)
    left, top, height = 0.0, drawing.height + (GAP_Y if drawing.height else 0.0), 0.0
    for node, (wide, high) in sizes.items():
        if left and left + wide > limit:
            left, top, height = 0.0, top + height + GAP_X, 0.0
        drawing.centres[node] = (left + wide / 2, top + high / 2)
        drawing.width, height = max(drawing.width, left + wide), max(height, high)
        left += wide + GAP_X
    drawing.height = top + height if sizes else drawing.height


def _acyclic(nodes: list, edges: list) -> list:
    """The edges, those that lead back along a path from their target turned round."""
    targets: dict = {node: [] for node in nodes}
    for source, target in edges:
        targets[source].append(target)
    state, back = {}, set()
    for root in nodes:
        stack = [(root, iter(targets[root]))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[node] = 2
                stack.pop()
            elif state.get(target) == 1:
                back.add((node, target))
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(targets[target])))
    return [(target, source) if (source, target) in back else (source, target) for source, target in edges]


def _layers(nodes: list, edges: list) -> dict:
    """Longest path from the sources; then each source moves down to just above its highest target."""
    waiting = {node: 0 for node in nodes}
    targets: dict = {node: [] for node in nodes}
    for source, target in edges:
        waiting[target] += 1
        targets[source].append(target)
    layer = {node: 0 for node in nodes}
    ready = [node for node in nodes if not waiting[node]]
    sources = list(ready)
    for node in ready:                          # grows while it is walked
        for target in targets[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in sources:
        if targets[node]:
            layer[node] = min(layer[target] for target in targets[node]) - 1
    return layer


def _with_dummies(sizes: dict, edges: list, layer: dict) -> tuple[list[list], dict, dict]:
    """Rows of nodes; per edge the chain of nodes it passes, one per layer; widths, dummies included."""
    rows: list[list] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node in sizes:
        rows[layer[node]].append(node)
    widths = {node: size[0] for node, size in sizes.items()}
    chains = {}
    for edge in edges:
        source, target = edge
        dummies = [("dummy", edge, level) for level in range(layer[source] + 1, layer[target])]
        for dummy in dummies:
            rows[dummy[2]].append(dummy)
            widths[dummy] = LANE
        chains[edge] = [source, *dummies, target]
    return rows, chains, widths


def _neighbours(chains: dict) -> tuple[dict, dict]:
    above: dict = {}
    below: dict = {}
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below.setdefault(upper, []).append(lower)
            above.setdefault(lower, []).append(upper)
    return above, below


def _ordered(rows: list[list], chains: dict) -> list[list]:
    """Each row sorted by the mean position of its neighbours, down and up in turn; the order with fewest crossings."""
    above, below = _neighbours(chains)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    rows = [list(row) for row in rows]
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        near = above if downward else below
        for i in range(1, len(rows)) if downward else range(len(rows) - 2, -1, -1):
            position = {node: k for k, node in enumerate(rows[i - 1] if downward else rows[i + 1])}
            own = {node: k for k, node in enumerate(rows[i])}
            rows[i].sort(key=lambda node: (_mean([position[n] for n in near.get(node, ())], own[node]), own[node]))
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _crossings(rows: list[list], below: dict) -> int:
    count = 0
    for upper, lower in pairwise(rows):
        position = {node: k for k, node in enumerate(lower)}
        ends: list[int] = []
        for node in upper:
            mine = sorted(position[n] for n in below.get(node, ()))
            count += sum(1 for end in ends for own in mine if end > own)
            ends += mine
    return count


def _across(rows: list[list], chains: dict, widths: dict) -> dict:
    """x of every node: near the mean of its neighbours, never nearer to the next in its row than the gap allows."""
    above, below = _neighbours(chains)
    x = {}
    for row in rows:
        edge = 0.0
        for node in row:
            x[node] = edge + widths[node] / 2
            edge += widths[node] + GAP_X
    for sweep in range(2 * SWEEPS):
        near = (above, below)[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([x[n] for n in near.get(node, ())], x[node]) for node in row]
            x.update(zip(row, _pooled(row, wanted, widths), strict=True))
    return x


def _pooled(row: list, wanted: list[float], widths: dict) -> list[float]:
    """The positions closest to the wanted ones that keep order and gaps (pool adjacent violators)."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + GAP_X)
    blocks: list[list[float]] = []                      # [mean, size]
    for want, offset in zip(wanted, offsets, strict=True):
        blocks.append([want - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + mean * size) / (blocks[-1][1] + size), blocks[-1][1] + size]
    means = [mean for mean, size in blocks for _ in range(int(size))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _finish(sizes: dict, edges: list, forward: list, rows: list[list], chains: dict, x: dict, widths: dict) -> Drawing:
    left = min((x[node] - widths[node] / 2 for row in rows for node in row), default=0.0)
    right = max((x[node] + widths[node] / 2 for row in rows for node in row), default=0.0)
    drawing, top, spans = Drawing(right - left), 0.0, {}
    for row in rows:
        height = max((sizes[node][1] for node in row if node in sizes), default=0.0)
        for node in row:
            own = sizes[node][1] if node in sizes else height
            spans[node] = (x[node] - left, top + (height - own) / 2, top + (height + own) / 2)
            if node in sizes:
                drawing.centres[node] = (x[node] - left, top + height / 2)
        top += height + GAP_Y
    drawing.height = max(top - GAP_Y, 0.0)
    for edge, turned in zip(edges, forward, strict=True):
        points = _route([spans[node] for node in chains[turned]])
        drawing.routes[edge] = points if edge == turned else points[::-1]
    return drawing


def _route(spans: list[tuple[float, float, float]]) -> list[Point]:
    first, *between, last = spans
    middle = [point for x, top, bottom in between for point in ((x, top), (x, bottom))]
    return [(first[0], first[2]), *middle, (last[0], last[1])]
