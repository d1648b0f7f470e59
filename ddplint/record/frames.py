"""What the user's Python did: which lines ran in which object's methods, who called whom, what was handed over.

``sys.settrace`` with local line events, for user files only; about two microseconds a line.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from torch import Tensor
from torch.nn import Module

from ddplint.record.calls import tensors_in
from ddplint.record.history import Site
from ddplint.record.source import is_own_file, is_user_file

_KEPT = 24          # frames kept for each (object, function): the first ones, and room for a few late ones


@dataclass(slots=True, eq=False)
class FrameSeen:
    code: CodeType
    owner: int
    """id() of ``self``, inherited by comprehensions; 0 for a plain function."""
    caller: Site | None
    above: "FrameSeen | None"
    phase: str
    order: int
    depth: int
    lines: set[int] = field(default_factory=set)
    last: int = 0
    """The line it returned from."""
    bound: dict[int, list[int]] = field(default_factory=dict)
    """id of a watched object -> the lines that ran while a local name stood for it."""
    bound_as: dict[int, str] = field(default_factory=dict)
    """id of a watched object -> that name."""
    tests: dict[int, dict[str, Any]] = field(default_factory=dict)
    """A watched line -> the local names as they were when it ran."""


@dataclass(slots=True, eq=False)
class Handover:
    """Tensors with suspect data that passed between user frames."""

    kind: str
    """received (from a call, at ``site``) or passed (to the frame, under ``name``)."""
    depth: int
    order: int
    site: Site | None
    bits: int
    frame: FrameSeen | None = None
    name: str = ""
    container: bool = False


class Frames:
    """Runs inside ``with Frames(...)``. ``bits_of`` gives a tensor's suspect data, ``order`` the count of calls so far."""

    def __init__(self) -> None:
        self.bits_of: Callable[[Any], int] = lambda tensor: 0
        self.order: Callable[[], int] = lambda: 0
        self.phase = ""
        self.watched: dict[int, str] = {}
        self.watched_lines: dict[str, set[int]] = {}
        self.seen: dict[tuple[int, CodeType], list[FrameSeen]] = {}
        self.lines: dict[str, set[int]] = {}
        self.handovers: list[Handover] = []
        self.stack: list[tuple[FrameSeen, FrameType]] = []
        self._known: dict[str, bool] = {}

    def __enter__(self):
        self._previous = sys.gettrace()
        sys.settrace(self._global)
        return self

    def __exit__(self, *exc) -> None:
        sys.settrace(self._previous)
        self.stack.clear()

    def depth(self) -> int:
        return len(self.stack)

    def forget(self) -> None:
        self.seen.clear()
        self.handovers.clear()

    def learn(self, model: Module) -> None:
        """Follow the files that the model's classes are written in too, in adopted libraries; not all of the library."""
        files = {getattr(sys.modules.get(type(m).__module__), "__file__", None) for m in model.modules()}
        self._known = {file: True for file in files if file and is_user_file(file)}

    # ------------------------------------------------------------------ events

    def _global(self, frame: FrameType, event: str, arg: Any):
        file = frame.f_code.co_filename
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = is_own_file(file)
        if not known or event != "call" or not self.phase:
            return None
        seen = self._enter(frame)
        self.stack.append((seen, frame))
        self._note_passed(seen, frame)
        lines = self.lines.setdefault(file, set())

        def local(frame: FrameType, event: str, arg: Any):
            if event == "line":
                seen.lines.add(frame.f_lineno)
                lines.add(frame.f_lineno)
                if self.watched:
                    self._watch(seen, frame)
            elif event == "return":
                self._leave(seen, frame, arg)
            return local
        return local

    def _enter(self, frame: FrameType) -> FrameSeen:
        code = frame.f_code
        above, caller = self.stack[-1] if self.stack else (None, None)
        owner = id(frame.f_locals["self"]) if "self" in frame.f_locals else 0
        if not owner and code.co_name.startswith("<") and above is not None:
            owner = above.owner
        site = Site(caller.f_code, caller.f_lasti, caller.f_lineno) if caller is not None else None
        seen = FrameSeen(code, owner, site, above, self.phase, self.order(), len(self.stack) + 1)
        kept = self.seen.setdefault((owner, code), [])
        if len(kept) < _KEPT:
            kept.append(seen)
        else:
            kept[_KEPT // 2:] = [*kept[_KEPT // 2 + 1:], seen]
        return seen

    def _leave(self, seen: FrameSeen, frame: FrameType, value: Any) -> None:
        seen.last = frame.f_lineno
        while self.stack and self.stack.pop()[0] is not seen:
            pass
        if self.stack and (bits := self._bits(value)):
            caller = self.stack[-1][1]
            site = Site(caller.f_code, caller.f_lasti, caller.f_lineno)
            self.handovers.append(Handover("received", len(self.stack), self.order(), site, bits))

    def _note_passed(self, seen: FrameSeen, frame: FrameType) -> None:
        code = frame.f_code
        local = frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        for name in code.co_varnames[:count]:
            value = local.get(name)
            if bits := self._bits(value):
                container = isinstance(value, list | tuple | dict)
                self.handovers.append(Handover("passed", seen.depth, self.order(), seen.caller, bits, seen, name, container))

    def _bits(self, value: Any) -> int:
        bits = 0
        for tensor in tensors_in(_opened(value)):
            bits |= self.bits_of(tensor)
        return bits

    def _watch(self, seen: FrameSeen, frame: FrameType) -> None:
        line, local = frame.f_lineno, frame.f_locals
        for name, value in local.items():
            if (key := id(value)) in self.watched and name != "self":
                lines = seen.bound.setdefault(key, [])
                seen.bound_as[key] = name
                if len(lines) < 1000:
                    lines.append(line)
        if line in self.watched_lines.get(seen.code.co_filename, ()) and line not in seen.tests:
            seen.tests[line] = dict(local)


def _opened(value: Any) -> Any:
    """A plain object of a user's class (a bag of outputs) as the mapping of its attributes; all else as it is."""
    kind = type(value)
    if kind.__module__ == "builtins" or issubclass(kind, Tensor | Module | type) or not kind.__dictoffset__:
        return value
    if kind is SimpleNamespace:
        return vars(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return vars(value) if file and is_own_file(file) and not callable(value) else value
