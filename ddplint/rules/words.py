"""Phrases and causes that several rules share."""

from collections.abc import Iterable, Sequence

from ddplint.evidence import Cause, Event, Failure, Place
from ddplint.views import ParameterView, ScenarioView

MOST_RUNS = 8
"""Numbers, or runs of them, that are listed."""


def listed(names: Sequence[str], most: int = 3) -> str:
    """``'a', 'b' and 4 more``."""
    shown = [f"'{name}'" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def numbered(noun: str, numbers: Iterable[int]) -> str:
    """``rank 1``, ``ranks 0 and 2``, ``steps 0-3``, ``ranks 0, 1, 8-1023``; of many scattered ones the first."""
    ordered = sorted(set(numbers))
    if not ordered:
        return f"no {noun}"
    if len(ordered) == 1:
        return f"{noun} {ordered[0]}"
    parts = _runs(ordered)
    if len(parts) > MOST_RUNS:
        left = len(ordered) - sum(last - first + 1 for first, last in parts[:MOST_RUNS])
        return f"{noun}s {', '.join(_run(*part) for part in parts[:MOST_RUNS])} and {left:,} more"
    *shown, last = [_run(*part) for part in parts]
    return f"{noun}s {', '.join(shown)} and {last}" if shown else f"{noun}s {last}"


def _runs(ordered: list[int]) -> list[tuple[int, int]]:
    """First and last of each run of at least three numbers; the others stand alone."""
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [part for run in runs for part in ([(run[0], run[-1])] if len(run) > 2 else [(n, n) for n in run])]


def _run(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else f"{first}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unfinished(scenario: ScenarioView) -> tuple[str, ...]:
    """What a missing gradient brings about: DDP's error at the next forward, and ranks that drift until then."""
    if scenario.finds_unused:
        return ()
    changed = ("failure:graph-changed",) if scenario.static else ()
    return ("failure:unfinished", "desync", "flag-needed", *changed)


def cause_of(parameter: ParameterView) -> Cause:
    """The recorded cause, else what the graph alone shows."""
    recorded = parameter.cause
    if recorded is not None:
        return recorded
    arrive = {view.name for view in (*parameter.scenario.terms, *parameter.scenario.outputs) if view.in_total}
    terms, outputs = ([name for name in names if name not in arrive] for names in (parameter.terms, parameter.outputs))
    if terms:
        return Cause("term-not-in-total", f"it is reached only by {listed(terms)}, which does not contribute to the total",
                     terms=terms)
    if outputs:
        noun = "outputs" if len(outputs) > 1 else "output"
        verb = "feed" if len(outputs) > 1 else "feeds"
        return Cause("output-not-in-loss", f"{noun} {listed(outputs)} {verb} no loss term", outputs=outputs)
    if parameter.scenario.graphs.distinct and parameter.module and not _called(parameter):
        return Cause("module-not-called", f"{parameter.module} is not called", module=parameter.module)
    return Cause("unknown", "nothing that the loss depends on was computed from it")


def _called(parameter: ParameterView) -> bool:
    return any(parameter.module in reach.graph.calls for reach in parameter.scenario.graphs.distinct)


def at_event(kind: str, text: str, event: Event) -> Cause:
    return Cause(kind, text, event.place)


def failure_place(failure: Failure) -> Place | None:
    return failure.frames[-1] if failure.frames else None


def ranks_and_steps(at: Iterable[tuple[int, int]]) -> dict[str, list[int]]:
    """(rank, step) pairs as keywords of Problem."""
    at = list(at)
    return {"ranks": sorted({rank for rank, _ in at}), "steps": sorted({step for _, step in at})}


def died_of_it(scenario: ScenarioView, step: int) -> tuple[str, ...]:
    """The subjects of a failure, in this step or a later one, that complains about values which are not finite."""
    later = any((failure.step or 0) >= step for _, failure in scenario.failed_as.get("not-finite", ()))
    return ("failure:not-finite", "failure:hang", "failure:collateral", "failure:collective", "sequence") if later else ()


def remedy_for(cause: Cause) -> str:
    """What to do about a parameter without a gradient, by its cause."""
    names = "{group}"
    outputs = listed(cause.outputs) if cause.outputs else "its output"
    terms = listed(cause.terms) if cause.terms else "its term"
    remedies = {
        "output-not-in-loss": f"add a loss term that reads {outputs}, or freeze {names} before DDP is built",
        "term-not-in-total": f"add {terms} to the total, or freeze {names} before DDP is built",
        "severed": f"remove the cut, or freeze {names} before DDP is built",
        "checkpoint": "pass use_reentrant=False to checkpoint()",
        "opaque": f"let the function's backward() return a gradient for {names}, or freeze it before DDP is built",
        "dead-end": f"use the result that is dropped, or do not build {names}",
        "not-used-by-module": f"use {names} in its module's forward, or do not build it",
        "module-not-called": f"call the module in every forward, or freeze or remove {names} before DDP is built",
    }
    return remedies.get(cause.kind, f"let {names} take part in the loss, or freeze it before DDP is built")
