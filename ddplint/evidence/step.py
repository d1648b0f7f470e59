"""What one step on one rank showed: the structure of its graph, its gradients, its events."""

from dataclasses import dataclass, field

from ddplint.evidence.model import Place

# StepSeen.use, a character per parameter: what its *local* gradient was, before the reduction.
NONE, ZERO, NONZERO, NONFINITE, FROZEN, UNSEEN = ".", "0", "1", "!", "-", "?"

# RankSeen.events: what a step did, in order.
EVENT_KINDS = (
    "forward",          # DDP.forward was called; detail = "", "no-sync" or "no-grad"
    "inner-forward",    # the wrapped module, or a part of it, was called past DDP.forward; detail = module name
    "backward",         # Tensor.backward or autograd.backward; detail = "" or "no-sync"
    "grad",             # torch.autograd.grad
    "no-sync",          # DDP.no_sync was entered
    "join",             # DDP.join was entered
    "clip",             # clip_grad_norm_ / clip_grad_value_; detail = "no-sync" when gradients were not reduced yet
    "optimizer-step",
    "cleared",          # an optimizer stepped, and the gradients that backward had given were gone; detail = "zero_grad" and the place, if that cleared them
    "skipped",          # a GradScaler left the optimizer's step out: it found a gradient that is not finite
    "requires-grad",    # requires_grad_ after the wrap; detail = module or parameter name
    "apply",            # Module._apply after the wrap (dtype, device); detail = module name
    "collective",       # detail = op
    "checkpoint",       # torch.utils.checkpoint.checkpoint; detail = "reentrant" or "non-reentrant"
)


@dataclass
class Output:
    """A tensor leaf of what the model returned."""

    path: str
    shape: list[int]
    dtype: str
    differentiable: bool
    visible: bool = True
    """DDP looks into tuples, lists, mappings and dataclasses; an output in a plain object is invisible to it."""
    behind: str = "0"
    """Bitset of the parameters that this output depends on."""
    terms: list[str] = field(default_factory=list)
    """The terms that read it (through the graph)."""
    in_total: bool = False


@dataclass
class Term:
    name: str
    differentiable: bool
    reach: str = "0"
    """Bitset of the parameters that it depends on, through the graph."""
    in_total: bool = False
    """Whether the total's graph contains it."""
    place: Place | None = None
    """Where it was created, when it has no graph; where it was divided by its count, when it is a mean."""


@dataclass
class Use:
    """One use of a shared parameter: a call of a module that owns it."""

    parameter: str
    module: str
    call: int
    in_total: bool


@dataclass
class Graph:
    """The structure of one step: equal steps share one (RankSeen.graphs, StepSeen.graph)."""

    outputs: list[Output] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    total: str = "0"
    """Bitset of the parameters that the total depends on, through the graph."""
    calls: dict[str, int] = field(default_factory=dict)
    """Module -> how often it was called."""
    uses: list[Use] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    """Why the graph does not show everything: reentrant checkpoints, custom functions, compiled regions."""
    flows: list[list[str]] = field(default_factory=list)
    """[source, target]: a module whose result the target consumes with no other module in between. Sources are modules
    that own parameters, targets such modules, ``output:PATH``, ``term:NAME`` or ``total:``."""


@dataclass
class StepSeen:
    step: int
    phase: str = "batch"
    """The last phase that was entered: batch, forward, terms, total, backward, optimizer, done; ``foreseen`` for a step
    that DDP's failure cut off and that the rank ran alone afterwards."""
    graph: int | None = None
    use: str = ""
    """A character per parameter, see NONE ... UNSEEN; empty where backward did not end."""
    synced: list[str] = field(default_factory=list)
    """Like ``use``, for what came after each forward that armed DDP, where that differs from the step's union: several
    forwards in a step, or gradient accumulation under no_sync. DDP's laws hold for each of these by itself."""
    fired: dict[str, int] = field(default_factory=dict)
    """Parameter -> how often it fired within one backward, where that is more than once."""
    values: dict[str, float] = field(default_factory=dict)
    """Term -> value."""
    weights: dict[str, float] = field(default_factory=dict)
    """Term -> d total / d term, where the total's graph contains it."""
    counts: dict[str, float] = field(default_factory=dict)
    """Term -> how many elements its mean is over on this rank, where that was seen."""
    nonfinite_outputs: list[str] = field(default_factory=list)
    """The outputs that hold a NaN or an infinity."""
    total: float | None = None
    total_differentiable: bool | None = None
    total_shape: list[int] | None = None
    seconds: float = 0.0


@dataclass
class Event:
    """Something that a step did, at a line of the user's."""

    step: int
    kind: str
    detail: str = ""
    place: Place | None = None


def bits(names: str) -> int:
    """A bitset from its hexadecimal text."""
    return int(names, 16)
