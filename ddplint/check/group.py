"""Problems that tell one story become one finding, under the highest module that they fill."""

import hashlib
from collections.abc import Iterable

from ddplint.check.raised import Raised
from ddplint.evidence import Evidence, Model, Place
from ddplint.report import KINDS, Finding
from ddplint.rules.words import numbered

SEVERITY = {"error": 0, "warning": 1, "note": 2}
LABELLED = 3


def findings(raised: Iterable[Raised], evidence: Evidence) -> list[Finding]:
    """The most telling first. Explained problems are left out: their speaker counts them."""
    groups: dict[tuple, list[Raised]] = {}
    for one in raised:
        if one.speaks:
            groups.setdefault(_key(one), []).append(one)
    merged: dict[tuple, list[list[Raised]]] = {}
    for key, group in groups.items():
        subjects = tuple(sorted(name for one in group for name in _names(one)))
        merged.setdefault((key[:-1], subjects), []).append(group)
    shaper = Shaper(evidence)
    stories = [[one for group in same for one in group] for same in merged.values()]
    told = [(shaper.finding(story), story) for story in stories]
    return [finding for finding, _ in sorted(told, key=lambda pair: _rank(*pair))]


def _key(one: Raised) -> tuple:
    """Equal for neighbours in one scenario; the last part is the scenario, over which equal groups are merged."""
    cause = one.problem.cause
    place = (cause.place.file, cause.place.line) if cause and cause.place else ()
    # Without a place only the text tells two causes of one kind apart.
    story = (cause.kind, place, "" if place or cause.kind in ("unknown", "module-not-called") else cause.text) if cause else ()
    own = () if one.kind in ("parameters", "arms") else (*_names(one), *one.problem.parameters)
    named = _names(one) or any(getattr(one.problem, kind) for kind in KINDS)
    model = one.model if named else None        # what names nothing of a model is the same in each
    return (one.rule.name, one.severity, one.accepted, one.kind, model, story, one.problem.message, own, tuple(one.scenarios))


def _names(one: Raised) -> list[str]:
    """The subjects, save where the scenario itself is the subject."""
    return [] if one.subjects == one.scenarios else one.subjects


def _rank(finding: Finding, story: list[Raised]) -> tuple:
    known = finding.cause is not None and finding.cause.place is not None
    return (finding.accepted is not None, SEVERITY.get(finding.severity, 3), not any(one.ends_ddp for one in story),
            -story[0].specific, not known, -len(finding.parameters), finding.rule, finding.group, finding.scenarios, finding.message)


class Shaper:
    """Makes findings; knows how many trainable parameters each module has."""

    def __init__(self, evidence: Evidence):
        self.models = evidence.models
        self._order = {scenario.name: i for i, scenario in enumerate(evidence.scenarios)}
        self._filled: dict[int, dict[str, int]] = {}
        self._numel: dict[int, dict[str, int]] = {}

    def finding(self, group: list[Raised]) -> Finding:
        first = group[0]
        problem = first.problem
        names = {kind: list(dict.fromkeys(n for one in group for n in getattr(one.problem, kind))) for kind in KINDS}
        parameters = names["parameters"]
        tops = self._tops(first.model, parameters) if parameters else []
        ranks = sorted({rank for one in group for rank in one.problem.ranks})
        steps = sorted({step for one in group for step in one.problem.steps})
        label, size = self._label(first, names, tops)
        finding = Finding(
            rule=first.rule.name, severity=first.severity, remedy=problem.remedy.replace("{group}", label), group=label,
            message=_message(problem.message, label + size, ranks, steps),
            parameters=parameters, outputs=sorted(names["outputs"]), terms=sorted(names["terms"]),
            modules=names["modules"] or [top for top in tops if top not in parameters],
            scenarios=sorted({s for one in group for s in one.scenarios}, key=lambda name: self._order.get(name, -1)),
            ranks=ranks, steps=steps, cause=problem.cause, accepted=first.accepted,
            explains=_sum(one.explains for one in group), elements=self._elements(first.model, parameters))
        finding.place = self._place(first.model, finding.modules or parameters)
        finding.fingerprint = _fingerprint(finding)
        return finding

    def _label(self, one: Raised, names: dict[str, list[str]], tops: list[str]) -> tuple[str, str]:
        """(the subject for the eye, its size in brackets)."""
        if one.kind == "losses":
            return "loss", ""
        kind = one.kind if one.kind in KINDS else next((kind for kind in ("parameters", "modules") if names[kind]), "")
        if kind == "parameters":
            parameters = names["parameters"]
            elements = self._elements(one.model, parameters)
            size = f", {_magnitude(elements)} elements" if elements else ""
            size = f" ({len(parameters):,} parameters{size})" if len(parameters) > 1 else ""
            return _joined(tops), size
        if kind == "outputs" or kind == "terms":
            return f"{kind[:-1]} {one.subjects[0]}", ""
        return (_joined(names[kind]) if kind else "run"), ""

    def _tops(self, model: int, names: list[str]) -> list[str]:
        """The fewest modules (or parameters) that hold these parameters and no other trainable one."""
        filled, inside = self._counts(model), {}
        strays = [name for name in names if name not in self._sizes(model)]     # parameters that are not the model's
        if len(strays) > 1 and len(strays) == len(names) and (prefix := _common(names)):
            return [prefix]
        for name in names:
            for module in _ancestry(name):
                inside[module] = inside.get(module, 0) + 1
        tops: dict[str, None] = {}
        for name in names:
            full = [m for m in _ancestry(name) if inside[m] == filled.get(m)]
            tops[full[-1] if full else name] = None
        return list(tops)

    def _place(self, model: int, names: list[str]) -> Place | None:
        """Where the class of the innermost module around the first name is defined, as far as it is the user's."""
        places = {module.name: module.place for module in self._model(model).modules if module.place}
        around = [part for name in names[:1] for part in (name, *_ancestry(name), "")]
        return next((places[part] for part in around if part in places), None)

    def _counts(self, model: int) -> dict[str, int]:
        if model not in self._filled:
            counts: dict[str, int] = {}
            for parameter in self._model(model).parameters:
                for module in _ancestry(parameter.name) if parameter.trainable else ():
                    counts[module] = counts.get(module, 0) + 1
            self._filled[model] = counts
        return self._filled[model]

    def _sizes(self, model: int) -> dict[str, int]:
        if model not in self._numel:
            self._numel[model] = {p.name: p.numel for p in self._model(model).parameters}
        return self._numel[model]

    def _elements(self, model: int, names: list[str]) -> int:
        return sum(self._sizes(model).get(name, 0) for name in names)

    def _model(self, model: int) -> Model:
        return self.models[model] if model < len(self.models) else Model("")


def _ancestry(name: str) -> list[str]:
    """The modules around a parameter, the innermost first."""
    found = []
    while "." in name:
        name = name.rpartition(".")[0]
        found.append(name)
    return found


def _common(names: list[str]) -> str:
    """The longest dotted prefix that all have."""
    shared = [part for part in _ancestry(names[0]) if all(name.startswith(f"{part}.") for name in names)]
    return shared[0] if shared else ""


def _joined(names: list[str]) -> str:
    more = len(names) - LABELLED
    return ", ".join(names[:LABELLED]) + (f" and {more:,} more" if more > 0 else "")


def _message(template: str, label: str, ranks: list[int], steps: list[int]) -> str:
    text = template.replace("{ranks}", numbered("rank", ranks)).replace("{steps}", numbered("step", steps))
    return f"{label}: {text}"


def _magnitude(elements: int) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if elements >= size:
            return f"{elements / size:.1f} {unit}"
    return f"{elements:,}"


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for rule, number in one.items():
            total[rule] = total.get(rule, 0) + number
    return dict(sorted(total.items()))


def _fingerprint(finding: Finding) -> str:
    """Of rule, scenarios and subjects: stays when lines or wording move."""
    parts = [finding.rule, *sorted(finding.scenarios)]
    for kind in KINDS:
        parts += [kind, *sorted(getattr(finding, kind))]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
