"""Inline SVG for the HTML page: the module graph and the size of gradients by depth. Colours come from the page's CSS."""

import math
from itertools import pairwise

from markupsafe import Markup

from ddplint.render import layers
from ddplint.render.text import clean, magnitude, plural, shorten
from ddplint.report import Box, Depth, GraphPicture, Link

CHARACTER, LINE, PADDING = 7.3, 15.0, 9.0
LABEL = 30                     # characters of a name in a box; its tooltip has all
MARGIN = 8.0
SIGNS = {"unused": "○ no gradient", "differs": "≠ differs by rank", "sometimes": "◐ in some steps",
         "partly": "◐ partly", "frozen": "frozen", "used": ""}


def graph(picture: GraphPicture) -> Markup:
    """Modules, outputs, terms and the total of one scenario, top down; cut ways are dashed and labelled."""
    boxes = {(box.kind, box.name): box for box in picture.boxes}
    texts = {key: _texts(box) for key, box in boxes.items()}
    sizes = {key: (max(len(line) for line in lines) * CHARACTER + 2 * PADDING, len(lines) * LINE + PADDING)
             for key, lines in texts.items()}
    links = [link for link in picture.links if link.source in boxes and link.target in boxes]
    drawing = layers.draw(sizes, [(link.source, link.target) for link in links])
    routed = {(link.source, link.target): link for link in links}
    parts = [_link(routed[edge], points) for edge, points in drawing.routes.items()]
    labels = _labels(routed, drawing.routes)
    right = max([drawing.width] + [x + len(text) * CHARACTER for x, _, text in labels])
    parts += [_box(box, texts[key], sizes[key], drawing.centres[key]) for key, box in boxes.items()]
    parts += [Markup('<g class="link"><text x="{:.1f}" y="{:.1f}">{}</text></g>').format(*label) for label in labels]
    label = f"Data flow of {clean(picture.scenario)}: {len(boxes):,} boxes"
    return _svg(right, drawing.height, "graph", label, parts)


def _texts(box: Box) -> list[str]:
    """The lines in a box: its name, what it is, and how its gradient is, spelt."""
    name = shorten(clean(box.name), LABEL, head=0.3)
    if box.kind != "module":
        told = {"output": "output", "term": "loss term", "total": "what backward() runs on"}[box.kind]
        lines = [name, told if box.state != "unused" else f"{told}, unused"]
    else:
        size = f", {magnitude(box.elements)}" if box.elements else ""
        lines = [name, f"{shorten(clean(box.title), LABEL)}{size}".strip(", ")]
        lines += [SIGNS.get(box.state, clean(box.state))] if box.state != "used" else []
    return [line for line in lines if line]


def _box(box: Box, lines: list[str], size: tuple[float, float], centre: layers.Point) -> Markup:
    width, height = size
    left, top = centre[0] - width / 2, centre[1] - height / 2
    radius = {"module": 3, "output": 12, "term": 12, "total": 3}.get(box.kind, 3)
    start = centre[1] - (len(lines) - 1) * LINE / 2 + 4
    texts = Markup("").join(
        Markup('<text x="{:.1f}" y="{:.1f}"{}>{}</text>').format(
            centre[0], start + i * LINE, Markup(' class="sub"') if i else "", line)
        for i, line in enumerate(lines))
    tip = ", ".join(filter(None, [clean(box.name), clean(box.title), plural(box.parameters, "parameter")
                                  if box.parameters else ""]))
    return Markup('<g class="box {} {}"><title>{}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" '
                  'rx="{}"/>{}</g>').format(box.kind, box.state, tip, left, top, width, height, radius, texts)


def _link(link: Link, points: list[layers.Point]) -> Markup:
    """A smooth line through its points, vertical at each, with an arrow head at its end."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    x, y = points[-1]
    down = 1 if y >= points[-2][1] else -1
    head = f"M{x - 4:.1f} {y - 7 * down:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7 * down:.1f}"
    return Markup('<g class="link{}"><path d="{}"/><path d="{}"/></g>').format(" cut" if link.cut else "", path, head)


def _labels(links: dict, routes: dict) -> list[tuple[float, float, str]]:
    """(x, y, text) under the source of a link: what cuts it, each cause once, a bare "cut" where a cut way begins."""
    behind = {link.target for link in links.values() if link.cut}
    labels, told = [], set()
    for edge, points in routes.items():
        link = links[edge]
        text = shorten(clean(link.label), 44)
        if text and text not in told:
            labels.append((points[0][0] + 6, points[0][1] + 14, f"cut: {text}" if link.cut else text))
        elif link.cut and not text and link.source not in behind:
            labels.append(((points[0][0] + points[1][0]) / 2 + 5, (points[0][1] + points[1][1]) / 2 + 4, "cut"))
        told.add(text)
    return labels


def _svg(width: float, height: float, kind: str, label: str, parts: list[Markup]) -> Markup:
    return Markup('<svg class="{}" role="img" aria-label="{}" width="{:.0f}" height="{:.0f}" viewBox="{:.0f} {:.0f} '
                  '{:.0f} {:.0f}">{}</svg>').format(
        kind, label, width + 2 * MARGIN, height + 2 * MARGIN, -MARGIN, -MARGIN, width + 2 * MARGIN,
        height + 2 * MARGIN, Markup("").join(parts))


# The size of gradients by depth: a dot per module and scenario over a logarithmic scale.

PLOT_HEIGHT, STEP, LEFT, TOP = 220.0, 9.0, 56.0, 12.0
OUTLINES = {
    "circle": ((-3.5, 0), "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"),
    "square": ((-3, -3), "h6v6h-6z"),
    "diamond": ((0, -4.5), "l4.5 4.5l-4.5 4.5l-4.5 -4.5z"),
    "triangle": ((0, -4.5), "l4.2 7.5h-8.4z"),
    "cross": ((-4, -1.2), "h2.8v-2.8h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8z"),
}
"""Where a mark's path begins, seen from its centre, and the path."""
SHAPES = list(OUTLINES)                # a scenario has a shape of its own, not only a colour
NAMES_BELOW = 60                                                  # with more modules only their range is named


def flow(depths: list[Depth]) -> Markup:
    scenarios = list(dict.fromkeys(name for depth in depths for name in depth.largest))[:len(SHAPES)]
    values = [v for depth in depths for v in depth.largest.values() if v and math.isfinite(v)]
    low, high = _decades(values)
    step = max(STEP, min(28.0, 900.0 / max(len(depths), 1)))
    spread = 5.0 if step > 4 * len(scenarios) else 0.0      # equal values would hide each other
    width, bottom = LEFT + step * len(depths) + 10, TOP + PLOT_HEIGHT
    parts = [_grid(low, high, width)]
    for column, depth in enumerate(depths):
        x = LEFT + step * (column + 0.5)
        parts += [_mark(kind, x + spread * (kind - (len(scenarios) - 1) / 2), _height(depth.largest[name], low, high),
                        depth.module, name, depth.largest[name])
                  for kind, name in enumerate(scenarios) if name in depth.largest]
        if len(depths) <= NAMES_BELOW:
            parts.append(_name(depth, f"translate({x - 3:.1f} {bottom + 40:.1f}) rotate(60)"))
    if len(depths) > NAMES_BELOW:
        parts += [_name(depths[0], f"translate({LEFT} {bottom + 42})"),
                  _name(depths[-1], f"translate({width - 10:.1f} {bottom + 42})", anchor="end")]
    longest = max((min(len(clean(depth.module)), 24) for depth in depths), default=0)
    below = 46.0 + 0.87 * CHARACTER * longest if len(depths) <= NAMES_BELOW else 46.0
    return _svg(width + 0.5 * CHARACTER * longest, bottom + below, "flow", "Largest gradient by module, logarithmic", parts)


def _name(depth: Depth, transform: str, anchor: str = "start") -> Markup:
    return Markup('<text class="module" text-anchor="{}" transform="{}">{}</text>').format(
        anchor, transform, shorten(clean(depth.module), 24, head=0.2))


def legend(depths: list[Depth]) -> list[tuple[Markup, str]]:
    """(a mark, its scenario) for each scenario in the plot."""
    scenarios = list(dict.fromkeys(name for depth in depths for name in depth.largest))[:len(SHAPES)]
    return [(Markup('<svg class="flow mark" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">{}</svg>').format(
        _shape(i, 6, 6)), clean(name)) for i, name in enumerate(scenarios)]


def _decades(values: list[float]) -> tuple[int, int]:
    """Whole powers of ten around the values, at least two apart, at most 24."""
    if not values:
        return -2, 0
    high = math.ceil(math.log10(max(values)))
    low = min(math.floor(math.log10(min(values))), high - 2)
    return max(low, high - 24), high


def _height(value: float, low: int, high: int) -> float:
    """y of a value; zero stands on a line of its own below the scale, what is not finite above it."""
    if not value:
        return TOP + PLOT_HEIGHT + 24
    if not math.isfinite(value):
        return TOP - 6
    share = (math.log10(value) - low) / (high - low)
    return TOP + PLOT_HEIGHT * (1 - min(max(share, 0.0), 1.0))


def _grid(low: int, high: int, width: float) -> Markup:
    stride = max(1, (high - low) // 8)
    lines = [(_height(10.0 ** power, low, high), f"1e{power}") for power in range(low, high + 1, stride)]
    lines.append((_height(0.0, low, high), "zero"))
    return Markup("").join(Markup('<path class="grid" d="M{} {:.1f}H{:.0f}"/><text class="tick" x="{}" y="{:.1f}">{}</text>')
                           .format(LEFT, y, width, LEFT - 6, y + 4, text) for y, text in lines)


def _mark(kind: int, x: float, y: float, module: str, scenario: str, value: float) -> Markup:
    tip = f"{clean(module)} in {clean(scenario)}: {value:.3g}"
    return Markup('<g class="{}"><title>{}</title>{}</g>').format("zero" if not value else "dot", tip, _shape(kind, x, y))


def _shape(kind: int, x: float, y: float) -> Markup:
    """A filled mark around (x, y)."""
    (dx, dy), outline = OUTLINES[SHAPES[kind]]
    return Markup('<path class="s{}" d="M{:.1f} {:.1f}{}"/>').format(kind, x + dx, y + dy, outline)
