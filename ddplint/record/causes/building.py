"""Causes that lie in how the model was built: lazy layers, broken ties, ranks that build differently."""

import ast

from torch import nn

from ddplint.evidence import Cause, Place
from ddplint.record import syntax
from ddplint.record.calls import storage_of
from ddplint.record.causes.guards import place_of
from ddplint.record.construction import Construction
from ddplint.record.frames import Frames
from ddplint.record.history import Site
from ddplint.record.replay import Replay


def why_uninitialized(model: nn.Module, construction: Construction, name: str) -> Cause:
    """The dummy forward that missed a lazy layer; without one, the line that made it."""
    module = name.rpartition(".")[0]
    above = {id(m) for prefix, m in model.named_modules() if not prefix or module == prefix or module.startswith(prefix + ".")}
    calls = [site for reference, site in construction.calls if id(reference()) in above]
    if calls:
        return Cause("uninitialized", f"the dummy forward does not reach '{module}'", place_of(calls[-1]), module=module)
    return Cause("uninitialized", f"'{module}' is lazy, and no forward was run before the wrap", created(model, construction, name),
                 module=module)


def created(model: nn.Module, construction: Construction, name: str) -> Place | None:
    """Where the parameter, or the part of the model that holds it, was assigned by the user's code."""
    parts = name.split(".")
    for size in range(len(parts) - 1, -1, -1):
        owner = model
        for part in parts[:size]:
            owner = getattr(owner, part, None) if isinstance(owner, nn.Module) else None
        if isinstance(owner, nn.Module) and (site := construction.site(owner, parts[size])) is not None:
            return place_of(site)
    return None


def why_untied(model: nn.Module, construction: Construction, names: list[str]) -> Cause | None:
    """Where names stopped being one parameter: a deep copy, else the last assignment of one of them."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    copies = [c for n in names if n in parameters and (c := construction.copied(parameters[n])) is not None]
    if copies:
        return Cause("broken-tie", "each one is a deep copy of its own", place_of(copies[-1].site))
    places = [p for n in names if (p := created(model, construction, n)) is not None]
    return Cause("broken-tie", "assigned as a parameter of its own", places[-1]) if places else None


def why_written(parameters: dict[str, nn.Parameter], written: dict[int, Site], names: list[str]) -> Cause | None:
    """Where the values of parameters were written by each rank on its own, though DDP broadcasts them at the wrap only."""
    site = next((site for name in names if (site := written.get(storage_of(parameters[name]))) is not None), None)
    return Cause("written", "each rank writes values of its own here, after DDP was built", place_of(site)) if site else None


def why_buffers_differ(replay: Replay, written: dict[int, Site]) -> Cause | None:
    """Where buffers were written by each rank on its own; first those that the loss is computed with."""
    buffers, totals = dict(replay.model.named_buffers()), [part.total for part in (replay, *replay.parts) if part.total is not None]
    names = [name for name in replay.request.buffers if name in buffers]
    read = [name for name in names if any(total.data & replay.bit(name) for total in totals)]
    for name in (*read, *names):
        module, _, attribute = name.rpartition(".")
        site = written.get(storage_of(buffers[name])) or replay.construction.late_site(replay.module(module), attribute)
        if site is not None and name in read:
            return Cause("diverging-state", f"each rank writes values of its own to '{name}' here, and computes its loss with them", place_of(site))
        if site is not None:
            return Cause("written", f"each rank writes values of its own to '{name}' here", place_of(site))
    return None


# ---------------------------------------------------------------------- ranks that build differently

_TELLING = {"print", "info", "debug", "warning", "log", "error", "set_device", "device", "manual_seed", "seed"}


def why_mismatched(model: nn.Module | None, construction: Construction, frames: Frames, names: list[str]) -> Cause:
    """Where the factory's code puts the rank to use; else where the first differing parameter was made."""
    for site in construction.rank_reads:
        used = _first_use(site, frames)
        if used is not None:
            also = [f"the rank is read at {site.place.file}:{site.line}"] if used.line != site.line else []
            return Cause("rank-dependent", "the model is built differently on each rank: its size depends on the rank", used, also=also)
    place = created(model, construction, names[0]) if model is not None and names else None
    return Cause("rank-dependent", "the ranks build models that differ", place)


def _first_use(site: Site, frames: Frames) -> Place | None:
    """The first line that ran and computes something with the rank read at ``site``."""
    function = syntax.function_of(site.code)
    ran = frames.lines.get(site.code.co_filename, set())
    if function is None:
        return site.place
    statement = next((s for s in ast.walk(function) if isinstance(s, ast.stmt) and s is not function
                      and s.lineno <= site.line <= s.end_lineno and not hasattr(s, "body")), None)
    if isinstance(statement, ast.Return):
        return _first_use_by_caller(site, frames)
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None if statement is None or _only_tells(statement) else site.place
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Name):
        return site.place
    for use in syntax.loads(function, target.id):
        used_in = syntax.statement_of(use)
        if use.lineno > statement.end_lineno and use.lineno in ran and not _only_tells(used_in, use):
            return Site(site.code, 0, use.lineno).place
    return None


def _first_use_by_caller(site: Site, frames: Frames) -> Place | None:
    """A helper that returns the rank: what its caller does with it."""
    for kept in frames.seen.values():
        for frame in kept:
            if frame.code is site.code and frame.caller is not None:
                return _first_use(frame.caller, frames)
    return None


def _only_tells(statement: ast.stmt, use: ast.AST | None = None) -> bool:
    """Whether a statement only prints, logs, seeds or picks a device."""
    calls = [a for a in syntax.ancestors(use) if isinstance(a, ast.Call)] if use is not None else \
        [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    names = {getattr(c.func, "attr", getattr(c.func, "id", "")) for c in calls}
    return bool(names & _TELLING)
