"""Data flow by module: what feeds which output and term, what gets no gradient, and where a way is cut."""

from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import PurePath

from ddplint.evidence import Graph, ScenarioSeen
from ddplint.pictures.parts import Parts, graphs
from ddplint.report import Box, Finding, GraphPicture, Link, Report, use_kind

PICTURES = 6          # scenarios that flow alike share one
STATES = {"always": "used", "never": "unused", "sometimes": "sometimes", "differs": "differs", "unseen": "used"}
TOTAL = ("total", "total")

Key = tuple[str, str]
"""(kind, name) of a box."""


@dataclass
class _Flow:
    """The graphs of a scenario as one."""

    links: list[tuple[Key, Key]]
    outputs: dict[str, set[str]]
    """Path -> the terms that read it, in any step."""
    terms: dict[str, bool]
    """Name -> whether the total contains it."""
    alive: set[Key]
    """Everything from which a way leads to the total."""


class Drawer:
    """Adds a picture per scenario to a report, unless an earlier one shows the same."""

    def __init__(self, report: Report, scenarios: list[str]):
        self.report, self.scenarios = report, scenarios
        self.modules: dict[Parts, list[tuple[Box, dict[str, str]]]] = {}
        self.flows: list[tuple[Parts, list[Graph], _Flow]] = []

    def add(self, parts: Parts, seen: ScenarioSeen) -> None:
        picture = self._picture(parts, seen)
        twin = next((old for old in self.report.graph if (old.boxes, old.links) == (picture.boxes, picture.links)), None)
        if twin is not None:
            twin.scenario += f", {seen.name}"
        elif picture.boxes and len(self.report.graph) < PICTURES:
            self.report.graph.append(picture)

    def _picture(self, parts: Parts, seen: ScenarioSeen) -> GraphPicture:
        flow = self._flow(parts, graphs(seen))
        boxes = [replace(box, state=states[seen.name]) for box, states in self._modules(parts)]
        boxes += [Box(path, "output", "used" if ("output", path) in flow.alive else "unused") for path in flow.outputs]
        boxes += [Box(term, "term", "used" if inside else "unused") for term, inside in flow.terms.items()]
        boxes.append(Box("total", "total"))
        known = {(box.kind, box.name) for box in boxes}
        links = [Link(source, target, cut=target not in flow.alive) for source, target in flow.links
                 if source in known and target in known]
        links += _severed(self.report.findings, seen.name, parts, known, links)
        return GraphPicture(seen.name, boxes, links)

    def _modules(self, parts: Parts) -> list[tuple[Box, dict[str, str]]]:
        """The modules, and what each is in every scenario."""
        if parts not in self.modules:
            self.modules[parts] = [(box, dict(zip(self.scenarios, _states(self.report, parts.trainable[box.name], self.scenarios),
                                                  strict=True))) for box in parts.modules]
        return self.modules[parts]

    def _flow(self, parts: Parts, found: list[Graph]) -> _Flow:
        """Scenarios mostly see equal graphs: one flow serves them."""
        for other, known, flow in self.flows:
            if other is parts and known == found:
                return flow
        self.flows.append((parts, found, _flow(parts, found)))
        return self.flows[-1][2]


def _flow(parts: Parts, found: list[Graph]) -> _Flow:
    outputs: dict[str, set[str]] = {}
    for output in (output for graph in found for output in graph.outputs if output.differentiable):
        outputs.setdefault(output.path, set()).update(output.terms)
    terms: dict[str, bool] = {}
    for term in (term for graph in found for term in graph.terms):
        terms[term.name] = terms.get(term.name, False) or term.in_total
    links = {(_key(source, parts), _key(target, parts)) for graph in found for source, target in graph.flows}
    links = {link for link in links if link[0] != link[1] and _drawn(link[1], outputs, terms)}
    links |= {(("output", path), ("term", term)) for path, readers in outputs.items() for term in readers}
    links |= {(("term", term), TOTAL) for term, inside in terms.items() if inside}
    links |= {(("output", output.path), TOTAL) for graph in found for output in graph.outputs
              if output.in_total and output.path in outputs and not terms}
    return _Flow(sorted(links), outputs, terms, _upstream(links, TOTAL))


def _key(name: str, parts: Parts) -> Key:
    kind, colon, rest = name.partition(":")
    if colon and kind in ("output", "term", "total"):
        return (kind, rest or "total")
    return ("module", parts.boxes.get(name or parts.root, name or parts.root))


def _drawn(target: Key, outputs: dict[str, set[str]], terms: dict[str, bool]) -> bool:
    """Past outputs and terms no line is drawn where the way through them is."""
    kind, name = target
    if kind == "total":
        return not terms and not outputs
    return kind != "term" or not any(name in readers for readers in outputs.values())


def _upstream(links: set[tuple[Key, Key]], end: Key) -> set[Key]:
    """Everything from which a way leads to ``end``, itself included."""
    sources: dict[Key, list[Key]] = {}
    for source, target in links:
        sources.setdefault(target, []).append(source)
    alive, waiting = {end}, [end]
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in alive:
                alive.add(source)
                waiting.append(source)
    return alive


def _states(report: Report, names: list[str], scenarios: list[str]) -> list[str]:
    """What these parameters' module is in each scenario. There may be a million cells, most of which are one object."""
    rows = [map(report.usage.get(name, {}).get, scenarios, repeat(())) for name in names]
    cells = zip(*rows, strict=True) if rows else repeat((), len(scenarios))
    return [_state({use_kind(cell) for cell in dict(zip(map(id, column), column, strict=True)).values()}) for column in cells]


def _state(kinds: set[str]) -> str:
    """Of a module, from what its trainable parameters do."""
    if not kinds:
        return "frozen"
    if len(kinds) == 1:
        return STATES[next(iter(kinds))]
    if "differs" in kinds:
        return "differs"
    return "partly" if "never" in kinds else "sometimes" if "sometimes" in kinds else "used"


def _severed(findings: list[Finding], scenario: str, parts: Parts, known: set[Key], links: list[Link]) -> list[Link]:
    """A cut leaves no trace in the graph: what its finding says is drawn from the module to what it should have reached."""
    found: dict[tuple[Key, Key], Link] = {}
    for finding in findings:
        cause = finding.cause
        if cause is None or cause.kind not in ("severed", "dead-end", "checkpoint") or scenario not in finding.scenarios:
            continue
        spot = f"{PurePath(cause.place.file).name}:{cause.place.line}" if cause.place else ""
        label = " ".join(part for part in (cause.operation or "", spot) if part)
        ends = [("term", term) for term in cause.terms if ("term", term) in known] or [TOTAL]
        last = _last_modules(finding, parts, known, links)
        found |= {(source, end): Link(source, end, True, label) for source in last for end in ends}
    return list(found.values())


def _last_modules(finding: Finding, parts: Parts, known: set[Key], links: list[Link]) -> list[Key]:
    """Those of the finding's modules that feed no other of them: the cut lies behind them."""
    modules = dict.fromkeys(_key(name.rpartition(".")[0], parts) for name in finding.parameters)
    modules = [module for module in modules if module in known]
    inner = {link.source for link in links if link.target in modules}
    return [module for module in modules if module not in inner] or modules
