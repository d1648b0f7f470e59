"""Rules over the evidence: which views each rule looks at, what it said, how much it examined."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddplint.check.globs import Globs, globs
from ddplint.check.raised import Raised, raise_
from ddplint.report import KINDS
from ddplint.rules.base import Problem, Rule
from ddplint.views import (
    Absent,
    ArmView,
    LossView,
    ModuleView,
    OutputView,
    ParameterView,
    RunView,
    ScenarioView,
    TermView,
)

OF_SCENARIO: dict[type, Callable[[ScenarioView], Iterable[Any]]] = {
    OutputView: lambda scenario: scenario.outputs,
    TermView: lambda scenario: scenario.terms,
    LossView: lambda scenario: [scenario.loss],
    ScenarioView: lambda scenario: [scenario],
}
OF_RUN: dict[type, Callable[[RunView], Iterable[Any]]] = {
    ModuleView: lambda run: run.modules,
    ArmView: lambda run: run.arms,
    RunView: lambda run: [run],
}
RUN = ""
"""The place of rules that look at the whole run among the scenarios' names."""


@dataclass(frozen=True)
class Active:
    """A rule as this judgement runs it."""

    rule: Rule
    severity: str
    ignore: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Sheet:
    """What one rule did."""

    active: Active
    raised: list[Raised] = field(default_factory=list)
    examined: dict[str, Callable[[Globs], int]] = field(default_factory=dict)
    """Scenario -> how many of the subjects that match were looked at."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Scenario -> why the rule could not judge there."""
    absent: dict[str, str] = field(default_factory=dict)
    """Scenario -> why there was nothing to judge."""
    broken: str | None = None

    def count(self, match: tuple[str, ...], scenarios: Sequence[str]) -> int:
        chosen = globs(match)
        return sum(count(chosen) for name, count in self.examined.items() if not scenarios or name in (RUN, *scenarios))


def apply(active: Active, run: RunView) -> Sheet:
    """Run one rule over everything; whatever it raises makes it broken."""
    sheet = Sheet(active)
    try:
        if active.rule.view in OF_RUN:
            _over_run(sheet, run)
        else:
            for scenario in run.scenarios:
                _over_scenario(sheet, scenario)
    except Exception as error:  # noqa: BLE001 (a rule may be anybody's code; its items are broken)
        sheet.broken = _one_line(error)
    return sheet


def _one_line(error: Exception) -> str:
    text = str(error).strip().split("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _over_scenario(sheet: Sheet, scenario: ScenarioView) -> None:
    rule = sheet.active.rule
    if _unseen(sheet, scenario):
        return
    if rule.view is ParameterView:
        views, sheet.examined[scenario.name] = _parameters(sheet.active, scenario)
    else:
        found = [view for view in OF_SCENARIO[rule.view](scenario) if not _ignored(sheet.active, view)]
        views, sheet.examined[scenario.name] = found, functools.partial(_count, found)
    for view in views:
        for problem in _problems(sheet.active, view):
            _add(sheet, problem, view, [scenario.name], scenario.seen.model)


def _unseen(sheet: Sheet, scenario: ScenarioView) -> bool:
    """Whether an aspect that the rule needs is missing here; notes why."""
    why = next((why for aspect in sheet.active.rule.checks if (why := scenario.why_unknown(aspect))), None)
    if why is not None:
        (sheet.absent if isinstance(why, Absent) else sheet.unknown)[scenario.name] = why
        return True
    partly = next((scenario.seen.partly[aspect] for aspect in sheet.active.rule.checks if aspect in scenario.seen.partly), None)
    if partly is not None:
        sheet.unknown[scenario.name] = partly           # what the rule finds counts; that it finds nothing does not
    return False


def _parameters(active: Active, scenario: ScenarioView) -> tuple[Iterator[ParameterView], Callable[[Globs], int]]:
    """Only those that can have the problem get a view; all that were observed count as examined."""
    rule, ignore = active.rule, globs(active.ignore)
    if "gradients" in rule.checks:
        examined: Sequence[int] = scenario.use.observed
    else:
        examined = range(len(scenario.model.parameters))
    positions = scenario.among(rule.among) if rule.among else examined
    name = [parameter.name for parameter in scenario.model.parameters] if ignore else []
    views = (scenario.parameter(i) for i in positions if not ignore or not ignore.matches(name[i]))
    return views, functools.partial(_count_parameters, scenario, examined, ignore)


def _count_parameters(scenario: ScenarioView, positions: Sequence[int], ignore: Globs, match: Globs) -> int:
    if not ignore and not match:
        return len(positions)
    fitting = _fitting(scenario.run, scenario.seen.model, match.patterns, ignore.patterns)
    return len(positions) if len(fitting) == len(scenario.model.parameters) else len(fitting.intersection(positions))


def _fitting(run: RunView, model: int, match: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[int]:
    wanted, passed = globs(match), globs(ignore)
    return run.once(("fitting", model, match, ignore), lambda: frozenset(
        i for i, p in enumerate(run.evidence.models[model].parameters)
        if wanted.matches(p.name) and not (passed and passed.matches(p.name))))


def _count(views: list[Any], match: Globs) -> int:
    named = views and views[0].kind in KINDS
    return sum(match.matches(view.name) for view in views) if named else len(views)


def _ignored(active: Active, view: Any) -> bool:
    return bool(active.ignore) and view.kind in KINDS and globs(active.ignore).matches(view.name)


def _over_run(sheet: Sheet, run: RunView) -> None:
    rule = sheet.active.rule
    names = [scenario.name for scenario in run.scenarios if not _unseen(sheet, scenario)]
    if not names:
        return
    views = [view for view in OF_RUN[rule.view](run) if not _ignored(sheet.active, view)]
    sheet.examined[RUN] = functools.partial(_count, views)
    for view in views:
        for problem in _problems(sheet.active, view):
            _add(sheet, problem, view, names, getattr(view, "index", 0))


def _problems(active: Active, view: Any) -> list[Problem]:
    said = active.rule.function(view, **active.options)
    return [] if said is None else said if isinstance(said, list) else [said]


def _add(sheet: Sheet, problem: Problem, view: Any, scenarios: list[str], model: int) -> None:
    ignore = globs(sheet.active.ignore)
    if ignore and view.kind not in KINDS and not _keep(problem, ignore):
        return
    sheet.raised.append(raise_(sheet.active.rule, problem, view.kind, view.name, scenarios, model, sheet.active.severity))


def _keep(problem: Problem, ignore: Globs) -> bool:
    """Take ignored names out of a problem that is about several; False where nothing is left of it."""
    had = any(getattr(problem, kind) for kind in KINDS)
    for kind in KINDS:
        setattr(problem, kind, [name for name in getattr(problem, kind) if not ignore.matches(name)])
    return not had or any(getattr(problem, kind) for kind in KINDS)
