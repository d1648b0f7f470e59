"""Why a module was not called, or its parameter not read: the guard, the call site, or the assignment."""

import ast
import dataclasses
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from ddplint.evidence import Cause, Place
from ddplint.record import syntax
from ddplint.record.causes.guards import (
    Guard,
    blocking,
    name_of,
    place_of,
    refined,
    short,
    skip_guard,
    skipped_while_bound,
    unmet,
)
from ddplint.record.frames import FrameSeen
from ddplint.record.replay import Replay
from ddplint.record.source import is_user_file

_BOOKKEEPING = {"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "requires_grad_", "modules",
                "named_modules", "apply", "buffers", "named_buffers", "data", "requires_grad", "grad"}
"""What is done with modules and parameters beside using them."""


@dataclass
class Owner:
    """The nearest module above the subject whose class is written in user code."""

    name: str
    module: nn.Module
    attribute: str
    """Of the owner: what leads to the subject."""
    rest: str
    """What follows after the attribute ('' where the attribute is the subject itself)."""


def explain_uncalled(replay: Replay, name: str) -> Cause:
    """For a module that was not called (and of which no parameter was read), given by name."""
    name = highest_idle(replay, name)
    if name not in replay.memo:
        replay.memo[name] = _explained(replay, name)
    return dataclasses.replace(replay.memo[name])


def _explained(replay: Replay, name: str) -> Cause:
    guard = _absence(replay, name, replay.module(name))
    text = f"'{name}' is not called"
    if guard is None:
        return Cause("module-not-called", f"{text}: nothing in this scenario's code calls it", _created(replay, name), module=name)
    return Cause("module-not-called", f"{text}: {guard.text}{_elsewhere(replay, name)}", guard.place, module=name)


def explain_unread(replay: Replay, parameter: str) -> Cause:
    """For a parameter that no operation read although its module was called."""
    module = parameter.rpartition(".")[0]
    guard = _absence(replay, parameter, None)
    text = f"'{module}' is called, but nothing reads the parameter" if module and module in replay.called else "nothing reads the parameter"
    if guard is None and (part := _part_in_use(replay, module)) is not None:
        name, place = part
        return Cause("not-used-by-module", f"'{module}' is not called: '{name}' inside it is used directly", place, module=module)
    if guard is None:
        return Cause("not-used-by-module", text, _used(replay, parameter) or _created(replay, parameter), module=module)
    return Cause("not-used-by-module", f"{text}: {guard.text}", guard.place, module=module)


def _part_in_use(replay: Replay, module: str) -> tuple[str, Place] | None:
    """A part of a module that itself was not called, and the line that uses the part: the rest of the module is gone past."""
    if not module or module in replay.called:
        return None
    for name, op in replay.tracer.read_by.items():
        part = name.rpartition(".")[0]
        if part.startswith(f"{module}.") and (place := place_of(op.site)) is not None:
            return part, place
    return None


def _elsewhere(replay: Replay, name: str) -> str:
    scenarios = replay.request.elsewhere.get(name) or []
    return f" (it is called in {', '.join(scenarios[:3])})" if scenarios else ""


# ---------------------------------------------------------------------- who is idle

def highest_idle(replay: Replay, name: str) -> str:
    """The highest ancestor in whose whole subtree no module was called and no parameter read."""
    while name and (parent := name.rpartition(".")[0]) and parent not in replay.active:
        name = parent
    return name


# ---------------------------------------------------------------------- the owner's source

def _absence(replay: Replay, name: str, subject: nn.Module | None) -> Guard | None:
    owner = owner_of(replay, name)
    if owner is None:
        return None
    if subject is not None and (guard := _passed_over(replay, subject)) is not None:
        return guard
    return _not_reached(replay, owner, owner.attribute, 0) or _not_reached_elsewhere(replay, owner) or _went_past(replay, owner)


def owner_of(replay: Replay, name: str) -> Owner | None:
    parts = name.split(".")
    for size in range(len(parts) - 1, -1, -1):
        module = replay.module(".".join(parts[:size]))
        if any(True for _ in class_nodes(type(module))):
            return Owner(".".join(parts[:size]), module, parts[size], ".".join(parts[size + 1:]))
    return None


def class_nodes(kind: type) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class statements, in user files, of a class and its bases."""
    for base in kind.__mro__:
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        if file is not None and is_user_file(file):
            for node in syntax.source(file).classes.get(base.__name__, ()):
                yield file, node


def _passed_over(replay: Replay, subject: nn.Module) -> Guard | None:
    """A loop or a function had the subject (or, of a list of modules, the first) in hand and passed over it."""
    while subject is not None:
        frames = [f for kept in replay.frames.seen.values() for f in kept if id(subject) in f.bound]
        if guard := skipped_while_bound(id(subject), [f for f in frames if f.owner] or frames):
            return guard
        subject = next(subject.children(), None) if isinstance(subject, nn.ModuleList | nn.ModuleDict) else None
    return None


def _not_reached(replay: Replay, owner: Owner, attribute: str, level: int) -> Guard | None:
    """What kept the owner's own methods from using ``self.attribute``; a method that did not run is asked about in turn."""
    idle = []
    for file, node in class_nodes(type(owner.module)):
        for use in _uses(file, node, attribute):
            method = _method(use, node)
            if method is None:
                continue
            frames = replay.frames_of(method, owner.module)
            if not frames:
                idle.append(name_of(method))
            elif guard := blocking(use, method, file, frames) or _blocked_inside(use, owner, method, file, frames):
                return guard
    found = (_not_reached(replay, owner, name, level + 1) for name in dict.fromkeys(idle) if name != attribute and level < 3)
    return next((guard for guard in found if guard is not None), None)


def _blocked_inside(use: ast.AST, owner: Owner, method: ast.AST, file: str, frames: list[FrameSeen]) -> Guard | None:
    """A use on a line that ran: kept back by a ternary, an ``and`` or a comprehension on that very line, or by its loop."""
    for node, test in syntax.tests_around(use, method):
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return refined(unmet(node, test, use, file, name_of(method)), node, method, frames)
    loop = next((a for a in syntax.ancestors(use) if isinstance(a, ast.For) and syntax.below(use, a.iter)), None)
    if loop is not None and owner.rest:
        ran = set().union(*(f.lines for f in frames))
        for node in ast.walk(loop):
            if isinstance(node, ast.Break) and node.lineno in ran:
                return skip_guard(node, method, file, name_of(method))
        return Guard(file, loop, name_of(method), "the loop does not come to it")
    choice = _choice(use)
    return None if choice is None else Guard(file, choice, name_of(method), f"`{short(choice)}` picks others")


def _choice(use: ast.AST) -> ast.AST | None:
    """The expression that picks one of several: ``self.heads[task]``, ``{...}[kind]``, ``getattr(self, name)``."""
    if isinstance(use, ast.Subscript) or (isinstance(use, ast.Call) and not isinstance(use.args[1], ast.Constant)):
        return use
    parent = use.parent
    while isinstance(parent, ast.Dict | ast.List | ast.Tuple):
        use, parent = parent, parent.parent
    return parent if isinstance(parent, ast.Subscript) and parent.value is use else None


def _went_past(replay: Replay, owner: Owner) -> Guard | None:
    """The owner was entered through another method than forward(): the call in its parent."""
    if not owner.name or owner.name in replay.called:
        return None
    above = owner_of(replay, owner.name)
    for file, node in class_nodes(type(above.module)) if above is not None else ():
        for use in _uses(file, node, above.attribute):
            method, entered = _method(use, node), use.parent
            if method is not None and isinstance(entered, ast.Attribute) and _is_called(entered) \
                    and any(entered.lineno in f.lines for f in replay.frames_of(method, above.module)):
                return Guard(file, entered, name_of(method), f"'{owner.name}' is entered through {entered.attr}(), not through forward()")
    return None


def _method(use: ast.AST, node: ast.ClassDef) -> ast.AST | None:
    """The method of the class that a node stands in; within __init__, the function that is made there (a lambda)."""
    inside = [a for a in syntax.ancestors(use) if isinstance(a, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    methods = [a for a in inside if a.parent is node]
    if methods and methods[0].name == "__init__":
        return None if inside[0] is methods[0] else inside[0]
    return methods[0] if methods else None


def _uses(file: str, node: ast.ClassDef, attribute: str) -> list[ast.AST]:
    """Where the class reads ``self.attribute``: calls first; mere tests for its presence do not count."""
    source = syntax.source(file)
    found = [*source.reads.get(attribute, ()), *(call for call in source.getattrs if _spells(call.args[1], attribute))]
    found += [item for item in source.items_of_self if _spells(item.slice, attribute) or isinstance(item.slice, ast.Name)]
    found = [use for use in found if node.lineno <= use.lineno <= node.end_lineno and not _is_presence_test(use)
             and not _is_bookkeeping(use)]
    return sorted(found, key=lambda use: (not _is_called(use), use.lineno, use.col_offset))


def _is_bookkeeping(use: ast.AST) -> bool:
    """A parameter's ``.to()`` has a result, and is a use; a module's may have none."""
    name = getattr(use.parent, "attr", None)
    return name in _BOOKKEEPING or (name == "to" and isinstance(use.parent.parent.parent, ast.Expr))


def _spells(node: ast.expr, attribute: str) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == attribute
    if isinstance(node, ast.JoinedStr):
        parts = [re.escape(str(v.value)) if isinstance(v, ast.Constant) else ".+" for v in node.values]
        return re.fullmatch("".join(parts), attribute) is not None
    return False


def _is_called(use: ast.AST) -> bool:
    return isinstance(use.parent, ast.Call) and use.parent.func is use


def _is_presence_test(use: ast.AST) -> bool:
    parent = use.parent
    return isinstance(parent, ast.Compare | ast.If | ast.IfExp | ast.BoolOp | ast.UnaryOp) and (
        not isinstance(parent, ast.IfExp) or parent.test is use) and not isinstance(parent, ast.UnaryOp | ast.Compare) or (
        isinstance(parent, ast.Compare) and any(isinstance(c, ast.Constant) and c.value is None for c in parent.comparators)) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))


def _not_reached_elsewhere(replay: Replay, owner: Owner) -> Guard | None:
    """Uses outside of the owner's class, in functions that ran: ``net.backbone.head(x)`` in a parent or a loss."""
    for file in replay.frames.lines:
        for use in syntax.source(file).reads.get(owner.attribute, ()):
            function = syntax.enclosing_function(use)
            if not isinstance(function, ast.FunctionDef) or _is_presence_test(use) \
                    or (isinstance(use.value, ast.Name) and use.value.id == "self"):
                continue
            frames = replay.frames_of(function)
            if frames and (guard := blocking(use, function, file, frames)) is not None:
                return guard
    return None


# ---------------------------------------------------------------------- where it was made, or used

def _created(replay: Replay, name: str) -> Place | None:
    """Where the subject, or the part of its owner that holds it, was assigned."""
    parts = name.split(".")
    for size in range(len(parts) - 1, -1, -1):
        site = replay.construction.site(replay.module(".".join(parts[:size])), parts[size])
        if site is not None:
            return place_of(site)
    return None


def _used(replay: Replay, parameter: str) -> Place | None:
    """Where the owner's code calls the part that holds the parameter (a library layer that leaves it unread)."""
    owner = owner_of(replay, parameter)
    if owner is None or not owner.rest:
        return None
    for file, node in class_nodes(type(owner.module)):
        for use in _uses(file, node, owner.attribute):
            method = _method(use, node)
            if method is not None and replay.frames_of(method, owner.module):
                return Guard(file, use, name_of(method), "").place
    return None
