"""What the parent asks of a solo run. Plain data: the parent builds it without torch."""

from dataclasses import dataclass, field

MISSING, ZERO, NONFINITE = "none", "zero", "nonfinite"


@dataclass
class Request:
    """The subjects whose cause is wanted, for one scenario on one rank. Empty fields ask for nothing."""

    scenario: str
    rank: int = 0
    steps: list[int] = field(default_factory=lambda: [0])
    """Traced; earlier ones are run untraced, so that the state is right."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Name -> MISSING (no gradient), ZERO or NONFINITE. Answered as ``parameter:NAME``."""
    outputs: list[str] = field(default_factory=list)
    """Paths of outputs that no term reads. Answered as ``output:PATH``."""
    terms: list[str] = field(default_factory=list)
    """Terms that contribute nothing, or are not finite. Answered as ``term:NAME``."""
    loss: bool = False
    """Whether the total has no graph, is not a scalar or is not finite. Answered as ``loss:``."""
    inplace: bool = False
    """Whether backward failed on a tensor modified in place. Answered as ``failure:``."""
    spent: bool = False
    """Whether backward ran into a graph that had been freed. Answered as ``failure:``."""
    firings: bool = False
    """Whether DDP ended at a gradient that was ready twice. Answered as ``failure:``, and by the message
    ``firings``: name -> count."""
    batches: bool = False
    """Whether this rank called the model less often than others within a step. Answered as ``batches:``."""
    update: list = field(default_factory=list)
    """The file and line of an optimizer's step that other ranks make and this one does not. Answered as ``ranks:``."""
    written: list[str] = field(default_factory=list)
    """Parameters whose values differ between the ranks though their gradients do not. Answered as ``ranks:``."""
    buffers: list[str] = field(default_factory=list)
    """Buffers whose values differ between the ranks. Answered as ``buffers:``."""
    strays: list[str] = field(default_factory=list)
    """Names of parameters outside of DDP's set, or ``*`` for every one that is read. Answered as ``stray:NAME``."""
    changes: list[str] = field(default_factory=list)
    """Names of parameters that were replaced or removed after the wrap. Answered as ``change:NAME``."""
    ties: list[list[str]] = field(default_factory=list)
    """Names that no longer share memory. Answered as ``tie:FIRST NAME``."""
    uninitialized: list[str] = field(default_factory=list)
    """Lazy parameters without a shape at the wrap. Answered as ``parameter:NAME``."""
    mismatched: list[str] = field(default_factory=list)
    """Parameters that differ between the ranks' models. Answered once, as ``model:``."""
    uses: list[list[str]] = field(default_factory=list)
    """Uses of a shared parameter that do not reach the total: [parameter, module]. Answered as ``use:PARAMETER:MODULE``."""
    modules: list[str] = field(default_factory=list)
    """Modules that this scenario does not call. Answered as ``module:NAME``."""
    elsewhere: dict[str, list[str]] = field(default_factory=dict)
    """Module -> the scenarios in which it is called."""


NO_STEPS = frozenset({"scenario", "rank", "steps", "elsewhere", "ties", "uninitialized", "mismatched"})
"""The fields that ask for nothing, or for what is seen while the model is built."""
