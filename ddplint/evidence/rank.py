"""What one rank saw of one scenario."""

from dataclasses import dataclass, field

from ddplint.evidence.model import Place
from ddplint.evidence.step import Event, Graph, StepSeen


@dataclass
class Failure:
    """How a rank ended before its scenario did."""

    kind: str
    """raised, exited, killed, hung, lost (a launch hears nothing more of it) or not run (after one before it was)."""
    phase: str
    """import, build, wrap, batch, forward, terms, total, backward, optimizer or idle."""
    step: int | None = None
    type: str = ""
    """The exception's class; the signal's name; ""."""
    message: str = ""
    frames: list[Place] = field(default_factory=list)
    """The user's frames, outermost first; for a hung rank, its stack."""
    module: str = ""
    """The innermost module that was running."""
    status: int | None = None
    """Exit status, where the rank ended by itself."""
    collateral: bool = False
    """Whether it only followed from another rank's end (connection closed by peer, ...)."""
    printed: list[str] = field(default_factory=list)
    """The last lines that the program wrote, where it exited or was killed."""


@dataclass
class Stray:
    """A tensor that gets gradients, or a place in the optimizer, without being among DDP's parameters."""

    name: str
    kind: str
    """unregistered (an nn.Parameter reachable from the model), tensor (a plain one), buffer, derived (one that an attribute of it was
    computed from), created-later, or outside (belongs to no part of it)."""
    in_optimizer: bool
    gradient: bool
    place: Place | None = None
    terms: list[str] = field(default_factory=list)
    """The terms that depend on it."""


@dataclass
class Change:
    """A parameter that is not as it was when DDP was built."""

    parameter: str
    what: str
    """requires_grad, dtype, device, identity or hooks (the gradient accumulator was replaced)."""
    step: int
    place: Place | None = None


@dataclass
class Tie:
    """Names that were one parameter, or are declared to be one, and are several now."""

    names: list[str]
    how: str
    place: Place | None = None


@dataclass
class Branch:
    """One arm of a branch in the model's or the loss's own source, for one module instance."""

    place: Place
    """The line of the fork."""
    arm: str
    """``if``, ``else``, ``case 2``, ``body`` (of a loop), ..."""
    taken: bool
    """Whether any rank took it in any step of this scenario."""
    module: str = ""


@dataclass
class Derivative:
    """A directional derivative of one term, in float64."""

    term: str
    parameters: list[str]
    """The parameters that were moved along a random direction."""
    analytic: float
    """Gradient times direction, by autograd."""
    numeric: float
    """The central difference."""
    place: Place | None = None


@dataclass
class Device:
    """The GPU that a rank ran on."""

    name: str
    """``cuda:0``"""
    backend: str
    """nccl, or gloo (over CUDA tensors)."""
    memory: int
    """The most bytes that tensors took there at one time."""


@dataclass
class RankSeen:
    rank: int
    same_as: int | None = None
    """The simulated rank whose lists this one shares, because it is fed the same. A file holds them once."""
    steps: list[StepSeen] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    """Per parameter: the largest absolute value of its local gradient over all steps (0.0 where there was none)."""
    strays: list[Stray] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    ties: list[Tie] = field(default_factory=list)
    optimizer: dict[str, list[str]] = field(default_factory=dict)
    """missing, foreign, twice -> parameter names; absent where no optimizer was seen."""
    optimizer_place: Place | None = None
    notes: list[str] = field(default_factory=list)
    """DDP's and torch's own warnings, once each."""
    failure: Failure | None = None
    device: Device | None = None
    """None on the CPU, and where the rank did not come to the end of its job."""
    layouts: list[str] | None = None
    """Parameters whose gradient has other strides than the parameter, hence than DDP's bucket; None: not looked at."""
    dead: dict[str, str] | None = None
    """Module -> ``zero`` or ``saturated``, where its output was that everywhere at every step; None: not looked at."""
    batchnorm: dict[str, int] | None = None
    """BatchNorm module in train mode, without SyncBatchNorm -> the fewest values per channel that it got in a step;
    None: not looked at."""
