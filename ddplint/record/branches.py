"""Which arms of the user's own branches a scenario takes: line tracing while forward, terms and total run.

Only forks that depend on more than the object's own attributes are told: ``if self.use_aux`` is configuration, and a
model is not wrong because it has options. Ternaries and one-line ``if x: y`` do not show in lines and are left out.
"""

import ast
import builtins
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

from torch import nn

from ddplint.evidence import Branch
from ddplint.record.source import is_own_file, place_at
from ddplint.record.syntax import source

LEFT = -1
"""The 'line' to which a frame goes when it returns."""


@dataclass
class _Function:
    """A function of the user's that has forks, and what was seen of it."""

    code: CodeType
    forks: list[ast.If]
    arcs: set[tuple[int, int]] = field(default_factory=set)
    """The lines that followed one another."""
    owners: set[str] = field(default_factory=set)

    def trace(self, frame: FrameType) -> Callable[..., Any]:
        """What Python is to call for each line of this call."""
        arcs, last = self.arcs, frame.f_lineno

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                arcs.add((last, frame.f_lineno))
                last = frame.f_lineno
            elif event == "return":
                arcs.add((last, LEFT))
            return line
        return line

    def branches(self) -> Iterator[Branch]:
        module = next(iter(self.owners)) if len(self.owners) == 1 else ""
        for fork in self.forks:
            if not any(fork.test.lineno <= a <= fork.test.end_lineno for arc in self.arcs for a in arc):
                continue                          # the fork itself was not reached
            place = place_at(self.code.co_filename, fork.lineno, self.code.co_name)
            for arm, statements in (("if", fork.body), ("else", fork.orelse)):
                if not _only_raises(statements):
                    yield Branch(place, arm, _taken(fork, arm, self.arcs), module)


class Branches:
    """``watched()`` traces what runs inside; ``found()`` reads the arms off the lines that followed one another."""

    def __init__(self, model: nn.Module):
        self.names = {id(module): name for name, module in model.named_modules()}
        self.functions: dict[int, tuple[CodeType, _Function | None]] = {}
        """By the code's id, as to hash a code takes longer than to trace it; None where it is not the user's or has no fork."""
        self.possible = sys.gettrace() is None
        """A debugger or coverage may be tracing already; it is left alone."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        if not self.possible:
            yield
            return
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if id(code) not in self.functions:
            self.functions[id(code)] = code, _function(frame)
        function = self.functions[id(code)][1]
        if function is None:
            return None
        function.owners.add(self.names.get(id(frame.f_locals.get("self"))) or "")
        return function.trace(frame)

    def found(self) -> list[Branch] | None:
        if not self.possible:
            return None
        return [branch for _, function in self.functions.values() if function for branch in function.branches()]


def untraced(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook of ours without tracing, under which all code runs at half speed (until Python 3.12, where to switch costs more)."""
    if sys.version_info >= (3, 12):
        return hook

    @functools.wraps(hook)
    def quiet(*args: Any) -> None:
        trace = sys.gettrace()
        if not isinstance(getattr(trace, "__self__", None), Branches):
            return hook(*args)
        sys.settrace(None)
        try:
            return hook(*args)
        finally:
            sys.settrace(trace)
    return quiet


def _function(frame: FrameType) -> _Function | None:
    code = frame.f_code
    if not is_own_file(code.co_filename):
        return None
    function = source(code.co_filename).functions.get((code.co_firstlineno, code.co_name))
    if not isinstance(function, ast.FunctionDef):
        return None
    # Names that no batch can change: imported modules.
    settled = {name for name in code.co_names if isinstance(frame.f_globals.get(name), ModuleType)}
    forks = list(_forks(function, settled))
    return _Function(code, forks) if forks else None


def _forks(function: ast.FunctionDef, settled: set[str]) -> Iterator[ast.If]:
    """The ``if`` statements of a function whose outcome can differ from batch to batch, nested functions left out."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and node.body[0].lineno > node.test.end_lineno and not _is_configuration(node.test, settled):
            yield node
        waiting += ast.iter_child_nodes(node)


def _is_configuration(test: ast.expr, settled: set[str]) -> bool:
    """Whether the test reads nothing but attributes of ``self``, constants and names of classes and modules."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} - settled
    return all(name == "self" or hasattr(builtins, name) or name[:1].isupper() for name in names)


def _only_raises(statements: list[ast.stmt]) -> bool:
    """An arm that only refuses its input is not one that training should take."""
    return bool(statements) and isinstance(statements[-1], ast.Raise)


def _taken(fork: ast.If, arm: str, arcs: set[tuple[int, int]]) -> bool:
    test = range(fork.test.lineno, fork.test.end_lineno + 1)
    body = range(fork.body[0].lineno, fork.body[-1].end_lineno + 1)
    after = {b for a, b in arcs if a in test and b not in test}
    entered = {b for b in after if b in body}
    return bool(entered) if arm == "if" else bool(after - entered)
