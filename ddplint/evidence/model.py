"""The wrapped model as it was when DDP was built, and places in the user's code."""

from dataclasses import dataclass, field


@dataclass
class Place:
    """A line of the user's code, never torch's. ``file`` is relative to the folder of the lint where it lies in it."""

    file: str
    line: int
    function: str = ""
    text: str = ""
    """The source line, stripped."""


@dataclass
class Cause:
    kind: str
    """module-not-called, not-used-by-module, dead-end, output-not-in-loss, term-not-in-total, severed,
    multiplied-by-zero, outside-ddp, checkpoint, nonfinite, unknown, ..."""
    text: str
    """One clause that completes "because ..."."""
    place: Place | None = None
    operation: str | None = None
    module: str = ""
    outputs: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)


@dataclass
class Parameter:
    name: str
    shape: list[int]
    dtype: str
    trainable: bool
    """requires_grad when DDP was built."""
    module: str = ""
    """The module that owns it: the name without its last part."""
    aliases: list[str] = field(default_factory=list)
    """Its other names, where several modules share it."""
    initialized: bool = True
    groups: int | None = None
    """In how many optimizer groups it stands; None where no optimizer was seen."""

    @property
    def numel(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass
class Module:
    name: str
    type: str
    place: Place | None = None
    """Where its class is defined."""
    batchnorm: bool = False
    children: int = 0


@dataclass
class Model:
    """The wrapped model as it was when DDP was built."""

    type: str
    parameters: list[Parameter] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    buffers: dict[str, list[int]] = field(default_factory=dict)
    ties: list[list[str]] = field(default_factory=list)
    """Broken ties: names that shared memory, or are declared tied, and no longer do (see Stray for the rest)."""
