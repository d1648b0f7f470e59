"""The nouns of a traced step: operations, the values between them, and where a value's gradient ends."""

import itertools
from dataclasses import dataclass, field
from types import CodeType, FrameType

from ddplint.evidence import Place
from ddplint.record.source import place_at, stack


@dataclass(slots=True, frozen=True)
class Site:
    """An instruction of the user's code: enough to build a Place, or to find the syntax node, when it is needed."""

    code: CodeType
    instruction: int
    line: int

    @property
    def place(self) -> Place:
        return place_at(self.code.co_filename, self.line, self.code.co_name)


@dataclass(slots=True, eq=False)
class Op:
    name: str
    index: int
    """Its position in the order of calls."""
    site: Site | None
    depth: int
    """How many user frames lay below it."""
    phase: str
    inputs: list["Value"]
    results: list["Value"] = field(default_factory=list)
    literals: tuple = ()
    """The plain numbers among its arguments."""
    order: int = 0
    """When it happened, on the clock that calls and handovers share."""


@dataclass(slots=True, eq=False)
class Value:
    """What is known of one tensor (as of one version, where it is written in place)."""

    op: Op | None
    """None for a source: a parameter, a buffer, a batch."""
    live: int = 0
    data: int = 0
    cuts: int = 0
    grad: bool = False
    """Whether it has a graph."""
    name: str = ""
    """A source's name."""
    shape: tuple = ()
    births: int = 0
    """Bitset of the operations in its history whose finite inputs gave a non-finite result."""
    state: str = ""
    """finite, inf or nan, where values were looked at."""
    slope: float | None = None
    """The largest absolute gradient, once backward came by; inf and nan included."""
    zero: bool = False
    """All zero, where values were looked at."""
    largest: float | None = None
    """The largest absolute value, where values were looked at."""


@dataclass(slots=True, eq=False)
class Cut:
    """A live input gave a result without a graph."""

    name: str
    site: Site | None
    bits: int
    floating: bool
    """Whether the result is a floating tensor (detach) and not an index or a mask (argmax)."""
    phase: str
    blame: Site | None = None
    """Who had switched gradients off, where that was the reason."""
    checkpoint: bool = False
    """Whether that was a reentrant checkpoint."""
    left: bool = False
    """Whether the value left torch (item, numpy)."""


@dataclass(slots=True, eq=False)
class Write:
    """An in-place write, for saved tensors that are modified before backward."""

    op: Op
    storage: int
    version: int


@dataclass(slots=True, eq=False)
class Saved:
    """A tensor that an operation with a graph read, and may have kept for backward."""

    op: Op
    storage: int
    version: int
    shape: tuple
    name: str


def frame_site(frame: FrameType) -> Site:
    return Site(frame.f_code, frame.f_lasti, frame.f_lineno)


def here() -> Site | None:
    """The innermost user frame of the current stack."""
    frame = next(stack(), None)
    return None if frame is None else frame_site(frame)


def outermost(depth: int) -> Site | None:
    """The outermost of ``depth`` user frames: the line of the user's loop, however deep the helper is that it calls."""
    frames = list(itertools.islice(stack(), max(depth, 1)))
    return frame_site(frames[-1]) if frames else None
