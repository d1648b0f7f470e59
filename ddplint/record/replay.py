"""One step of the user's program under the tracer: what a decision about causes can look at."""

import ast
import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ddplint.evidence import Cause
from ddplint.record.calls import tensors_in
from ddplint.record.construction import Construction
from ddplint.record.frames import Frames, FrameSeen
from ddplint.record.graph import key_of, walk
from ddplint.record.history import Site, Value
from ddplint.record.program import Program
from ddplint.record.request import Request
from ddplint.record.slopes import Slopes
from ddplint.record.syntax import enclosing_function, function_of
from ddplint.record.trace import Tracer


@dataclass
class Replay:
    """A traced step. Suspects are the parameters asked about, as bits of ``tracer.suspects``."""

    request: Request
    program: Program
    model: nn.Module
    tracer: Tracer
    frames: Frames
    construction: Construction
    parameters: dict[str, nn.Parameter] = field(default_factory=dict)
    step: int = 0
    outputs: dict[str, Value] = field(default_factory=dict)
    output_reach: dict[str, int] = field(default_factory=dict)
    terms: dict[str, Value] = field(default_factory=dict)
    term_reach: dict[str, int] = field(default_factory=dict)
    total: Value | None = None
    total_reach: int = 0
    total_graph: bool = False
    """Whether any parameter of the model, suspect or not, is in the total's graph."""
    term_graph: dict[str, bool] = field(default_factory=dict)
    """Whether any parameter of the model is in the term's graph."""
    initialised: dict[int, Any] = field(default_factory=dict)
    """id of a parameter -> the Site that last wrote its values while the model was built."""
    wrapped: dict[str, int] = field(default_factory=dict)
    """Name -> id of the modules as DDP saw them."""
    term_ids: dict[str, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    fired: int = 0
    """Bitset of the suspects that got a gradient in this step."""
    slopes: Slopes | None = None
    frozen: dict[str, Site | None] = field(default_factory=dict)
    """Suspects whose requires_grad was off at this backward() of a loop of the user's own -> the line that switched it off."""
    backward: Site | None = None
    """The user's line that called backward(), in a loop of their own."""
    last_backward: int = 0
    """When the last backward() began, on the tracer's clock."""
    blown: Cause | None = None
    """Why gradients, or an update, were not finite in an earlier step, from which parameters are not finite now."""
    error: BaseException | None = None
    memo: dict[Any, Any] = field(default_factory=dict)
    """What decisions have worked out and others can use."""
    parts: list["Replay"] = field(default_factory=list)
    """In a loop of the user's own: the step as it was at each backward()."""
    spent: Any = None
    """Who looks for graphs that have been freed (causes/spent.py)."""
    forward_stack: list[Site] = field(default_factory=list)
    """In a loop of the user's own: the user's frames around the first call of the wrapper, innermost first."""

    @functools.cached_property
    def active(self) -> set[str]:
        """Every module that was called or read from, and all their ancestors."""
        active = {""}
        for name in self.called | {parameter.rpartition(".")[0] for parameter in self.tracer.read_by}:
            while name and name not in active:
                active.add(name)
                name = name.rpartition(".")[0]
        return active

    def keep_part(self) -> None:
        """Remember what this backward() was given; outputs from here on belong to the next one."""
        self.parts.append(dataclasses.replace(self, parts=[], memo={}))
        self.outputs, self.output_reach = {}, {}

    def bit(self, parameter: str) -> int:
        return 1 << self.tracer.suspects[parameter]

    def bits_for(self, subject: str) -> int:
        """The bit of a subject that gets one here."""
        return 1 << self.tracer.suspects.setdefault(subject, len(self.tracer.suspects))

    def bits(self, subjects: Iterable[str]) -> int:
        """The bits of those subjects that have one (outputs and terms have them too, as ``output:PATH``, ``term:NAME``)."""
        found = 0
        for subject in subjects:
            if subject in self.tracer.suspects:
                found |= self.bit(subject)
        return found

    def last_return(self, phase: str) -> FrameSeen | None:
        """The outermost user frame of a phase that returned last."""
        frames = [f for kept in self.frames.seen.values() for f in kept if f.phase == phase and f.depth == 1]
        return max(frames, key=lambda f: f.order, default=None)

    def frames_of(self, function: ast.AST, owner: Any = None) -> list[FrameSeen]:
        """The frames of a function (of one object's, where an owner is given), with those of what is nested in it."""
        found = self._by_function.get(id(function), [])
        return found if owner is None else [frame for frame in found if frame.owner == id(owner)]

    @functools.cached_property
    def _by_function(self) -> dict[int, list[FrameSeen]]:
        found: dict[int, list[FrameSeen]] = {}
        for (_, code), kept in self.frames.seen.items():
            node = function_of(code)
            while node is not None:
                found.setdefault(id(node), []).extend(kept)
                node = enclosing_function(node)
        return found

    def module(self, name: str) -> nn.Module:
        return self.model.get_submodule(name)


def reaches(tensors: list[Any], suspects: dict[int, int]) -> list[tuple[int, bool]]:
    """For each tensor: the suspects (id of the leaf -> bit) that its graph leads to, and whether it leads to any parameter."""
    seen = walk(key_of(tensor) for tensor in tensors)
    found = [[0, False] for _ in tensors]
    for leaf, roots in seen.leaves.items():
        bit, is_parameter = suspects.get(leaf, 0), isinstance(seen.tensors[leaf], nn.Parameter)
        while roots:
            low = roots & -roots
            entry = found[low.bit_length() - 1]
            entry[0] |= bit
            entry[1] |= is_parameter
            roots ^= low
    return [(bits, known) for bits, known in found]


def values_of(tracer: Tracer, tensors: Any) -> Value | None:
    """One value for all tensors in a structure (None where there is none)."""
    found = [tracer.value_of(tensor) for tensor in tensors_in(tensors)]
    if len(found) < 2:
        return found[0] if found else None
    merged = Value(found[0].op)
    for value in found:
        merged.live, merged.data, merged.cuts = merged.live | value.live, merged.data | value.data, merged.cuts | value.cuts
        merged.births |= value.births
    return merged
