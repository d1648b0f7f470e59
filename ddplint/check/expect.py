"""Expectations: house rules over the evidence that need no Python.

    every-task-reaches-the-backbone:
      expect: {parameters: "backbone.*", reached_by: [cls, seg]}
"""

import difflib
import functools
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ddplint.check.apply import Active, Sheet, apply
from ddplint.check.globs import Globs, globs
from ddplint.errors import SpecError
from ddplint.rules.base import Problem, Rule
from ddplint.rules.words import listed
from ddplint.spec import Item
from ddplint.views import RunView, ScenarioView

SUBJECTS = ("parameters", "modules", "outputs", "terms")
CONDITIONS = {"reached_by": ("parameters", "modules", "outputs"), "used": SUBJECTS,
              "gradient": ("parameters", "modules"), "share": ("terms",)}
USED = ("always", "sometimes", "never")
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Comparison:
    text: str
    holds: Callable[[float], bool]


@dataclass(frozen=True)
class Expectation:
    where: str
    kind: str
    names: tuple[str, ...]
    conditions: dict[str, Any]
    scenarios: tuple[str, ...]
    ranks: tuple[int, ...]


def expectations(items: Iterable[Item], run: RunView) -> dict[str, Sheet]:
    """A sheet for every item with ``expect``, by its id. Raises SpecError for what cannot be meant."""
    return {item.id: _sheet(item, read(item), run) for item in items if item.expect is not None}


# ---------------------------------------------------------------------- reading


def read(item: Item) -> Expectation:
    where, given = f"checklist.{item.id}.expect", dict(item.expect or {})
    kinds = [kind for kind in SUBJECTS if kind in given]
    if len(kinds) != 1:
        raise SpecError("names nothing to look at" if not kinds else f"names {' and '.join(kinds)}", where=where,
                        hint=f"exactly one of {', '.join(SUBJECTS)}")
    kind, scenarios = kinds[0], given.pop("scenarios", item.scenarios)
    names, ranks = _texts(given.pop(kind), f"{where}.{kind}"), _ranks(given.pop("ranks", ()), f"{where}.ranks")
    conditions = {key: _condition(key, value, kind, f"{where}.{key}") for key, value in given.items()}
    if not conditions:
        raise SpecError("expects nothing", where=where, hint=f"add one of {', '.join(CONDITIONS)}")
    return Expectation(where, kind, names, conditions, _texts(scenarios, f"{where}.scenarios"), ranks)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not all(isinstance(name, str) and name for name in names) or (not names and value not in ((), [])):
        raise SpecError(f"expected a name or a list of names, found {value!r}", where=where)
    return names


def _ranks(value: Any, where: str) -> tuple[int, ...]:
    ranks = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 for rank in ranks):
        raise SpecError(f"expected ranks, found {value!r}", where=where, hint="ranks: [0, 1]")
    return ranks


def _condition(key: str, value: Any, kind: str, where: str) -> Any:
    if key not in CONDITIONS:
        near = difflib.get_close_matches(key, [*CONDITIONS, *SUBJECTS, "scenarios", "ranks"], 1)
        raise SpecError("is no expectation", where=where,
                        hint=f"did you mean '{near[0]}'?" if near else f"one of {', '.join(CONDITIONS)}")
    if kind not in CONDITIONS[key]:
        raise SpecError(f"says nothing about {kind}", where=where, hint=f"it goes with {', '.join(CONDITIONS[key])}")
    if key == "reached_by":
        names = _texts(value, where)
        if not names:
            raise SpecError("names no term", where=where, hint="reached_by: [cls, seg]")
        return names
    if key == "used":
        if value not in USED:
            raise SpecError(f"expected one of {', '.join(USED)}, found {value!r}", where=where)
        return value
    return _comparison(value, where)


def _comparison(value: Any, where: str) -> Comparison:
    match = re.fullmatch(r"\s*(<=|>=|<|>)\s*([-+\d.eE]+)\s*", value) if isinstance(value, str) else None
    try:
        bound = float(match[2]) if match else None
    except ValueError:
        bound = None
    if match is None or bound is None:
        raise SpecError(f"expected a comparison, found {value!r}", where=where, hint='"> 1e-6" or "<= 0.5"')
    return Comparison(f"{match[1]} {match[2]}", lambda x: COMPARISONS[match[1]](x, bound))


# ---------------------------------------------------------------------- judging


def _sheet(item: Item, expectation: Expectation, run: RunView) -> Sheet:
    """What the expectation found; examined are the names it is about, in the scenarios it is about."""
    severity = item.severity or "error"
    rule = Rule(item.id, functools.partial(_judge, expectation), severity, _aspects(expectation), 1)
    rule.__dict__["view"] = ScenarioView        # a partial has no annotations
    sheet = apply(Active(rule, severity), run)
    for table in (sheet.examined, sheet.unknown, sheet.absent):
        for name in [name for name in table if expectation.scenarios and name not in expectation.scenarios]:
            del table[name]
    for scenario in run.scenarios:
        if scenario.name in sheet.examined:
            found = subjects(expectation, scenario)
            sheet.examined[scenario.name] = functools.partial(_number, len(found))
            if not found:
                sheet.absent[scenario.name] = _no_match(expectation, scenario)
    not_run = [name for name in expectation.scenarios if name not in {scenario.name for scenario in run.scenarios}]
    sheet.unknown |= {name: "the scenario was not run" for name in not_run}
    return sheet


def _number(number: int, match: Globs) -> int:
    return number


def _no_match(expectation: Expectation, scenario: ScenarioView) -> str:
    near = difflib.get_close_matches(expectation.names[0], _every(expectation, scenario), 1)
    hint = f"; the nearest is '{near[0]}'" if near else ""
    return f"no {expectation.kind.rstrip('s')} matches {listed(list(expectation.names))}{hint}"


def _aspects(expectation: Expectation) -> tuple[str, ...]:
    needs = {"parameters": {"gradients"}, "modules": {"steps"}, "outputs": {"outputs"}, "terms": {"terms"}}[expectation.kind]
    needs = needs | ({"terms"} if "reached_by" in expectation.conditions else set())
    return tuple(sorted(needs | ({"sizes"} if "gradient" in expectation.conditions else set())))


def _judge(expectation: Expectation, scenario: ScenarioView) -> list[Problem]:
    if expectation.scenarios and scenario.name not in expectation.scenarios:
        return []
    problems = []
    for name in subjects(expectation, scenario):
        for key, wanted in expectation.conditions.items():
            text = CHECKS[key](expectation, scenario, name, wanted)
            if text:
                problems.append(Problem(text, remedy=f"mend it, or change {expectation.where}", subject=expectation.kind, **{expectation.kind: [name]},
                                        about=(f"expect:{expectation.where}:{name}",)))
    return problems


def subjects(expectation: Expectation, scenario: ScenarioView) -> list[str]:
    """The names that the expectation is about in this scenario."""
    wanted = globs(expectation.names)
    return [name for name in _every(expectation, scenario) if wanted.matches(name)]


def _every(expectation: Expectation, scenario: ScenarioView) -> list[str]:
    return {
        "parameters": lambda: [p.name for p in scenario.model.parameters if p.trainable],
        "modules": lambda: [m.name for m in scenario.model.modules if m.name],
        "outputs": lambda: [output.name for output in scenario.outputs],
        "terms": lambda: [term.name for term in scenario.terms],
    }[expectation.kind]()


def _places(expectation: Expectation, places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return [at for at in places if not expectation.ranks or at[0] in expectation.ranks]


def _reached(expectation: Expectation, scenario: ScenarioView, name: str, wanted: tuple[str, ...]) -> str | None:
    """Every term must arrive, from where it stands."""
    if expectation.kind == "outputs":
        reaching = set(next(o.terms for o in scenario.outputs if o.name == name))
        reaching = {term.name for term in scenario.terms if term.name in reaching and term.contributes_at}
    else:
        members = set(_parameters(expectation, scenario, name))
        reaching = {term.name for term in scenario.terms if term.contributes_at and members & set(term.parameters)}
    lost = [term for term in wanted if not any(globs((term,)).matches(other) for other in reaching)]
    return f"not reached by {'term' if len(lost) == 1 else 'terms'} {listed(lost)}" if lost else None


def _parameters(expectation: Expectation, scenario: ScenarioView, name: str) -> list[str]:
    if expectation.kind == "parameters":
        return [name]
    return [p.name for p in scenario.model.parameters if p.trainable and p.name.startswith(f"{name}.")]


def _used(expectation: Expectation, scenario: ScenarioView, name: str, wanted: str) -> str | None:
    used, seen = _use(expectation, scenario, name)
    if not seen:
        return None
    found = "always" if len(used) == len(seen) else "sometimes" if used else "never"
    return None if found == wanted else f"expected to be used {wanted}, was used {found} ({len(used)} of {len(seen)} steps)"


def _use(expectation: Expectation, scenario: ScenarioView, name: str) -> tuple[list, list]:
    """((rank, step) where it was used, where it was looked at)."""
    graphs = scenario.graphs.at
    if expectation.kind == "parameters":
        view = scenario.parameter(next(i for i, p in enumerate(scenario.model.parameters) if p.name == name))
        used, seen = view.used_at, [*view.used_at, *view.missing_at]
    elif expectation.kind == "modules":
        used, seen = [at for at, reach in graphs.items() if name in reach.graph.calls], list(graphs)
    elif expectation.kind == "outputs":
        used, seen = [at for at, reach in graphs.items() if name in reach.arrived], list(graphs)
    else:
        used, seen = next(term.contributes_at for term in scenario.terms if term.name == name), list(graphs)
    return _places(expectation, used), _places(expectation, seen)


def _gradient(expectation: Expectation, scenario: ScenarioView, name: str, wanted: Comparison) -> str | None:
    members = set(_parameters(expectation, scenario, name))
    positions = [i for i, p in enumerate(scenario.model.parameters) if p.name in members]
    ranks = [rank for rank in scenario.ranks if rank.size and (not expectation.ranks or rank.rank in expectation.ranks)]
    size = max((rank.size[i] for rank in ranks for i in positions if i < len(rank.size)), default=0.0)
    return None if wanted.holds(size) else f"its largest gradient is {size:.3g}, expected {wanted.text}"


def _share(expectation: Expectation, scenario: ScenarioView, name: str, wanted: Comparison) -> str | None:
    """|weight x value| over the sum of all terms', in every step."""
    worst = None
    for at in _places(expectation, scenario.steps_seen):
        step = scenario.step(at)
        parts = {term: abs(step.weights.get(term, 0.0) * value) for term, value in step.values.items()}
        total = sum(parts.values())
        if total > 0 and name in parts and not wanted.holds(share := parts[name] / total):
            worst = f"its share of the loss is {share:.3g} on rank {at[0]} in step {at[1]}, expected {wanted.text}"
    return worst


CHECKS: dict[str, Callable[..., str | None]] = {"reached_by": _reached, "used": _used, "gradient": _gradient, "share": _share}
