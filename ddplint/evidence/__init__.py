"""The evidence: what each rank saw. Plain data, no tensors; one JSON file.

Everything that varies with a parameter is kept by position in ``Model.parameters``: a state per parameter is one
character, a set of parameters is one hexadecimal bitset (bit i = parameter i). That keeps 200 scenarios of 5,000
parameters within tens of megabytes.
"""

from dataclasses import dataclass, field
from typing import Any

from ddplint.evidence.model import (
    Cause,
    Model,
    Module,
    Parameter,
    Place,
)
from ddplint.evidence.rank import (
    Branch,
    Change,
    Derivative,
    Device,
    Failure,
    RankSeen,
    Stray,
    Tie,
)
from ddplint.evidence.step import (
    EVENT_KINDS,
    FROZEN,
    NONE,
    NONFINITE,
    NONZERO,
    UNSEEN,
    ZERO,
    Event,
    Graph,
    Output,
    StepSeen,
    Term,
    Use,
    bits,
)

__all__ = [
    "EVENT_KINDS",
    "FROZEN",
    "NONE",
    "NONFINITE",
    "NONZERO",
    "SCHEMA_VERSION",
    "UNSEEN",
    "ZERO",
    "Branch",
    "Cause",
    "Change",
    "Derivative",
    "Device",
    "Difference",
    "Event",
    "Evidence",
    "Failure",
    "Graph",
    "Mismatch",
    "Model",
    "Module",
    "Outcome",
    "Output",
    "Parameter",
    "Place",
    "RankSeen",
    "Reference",
    "ScenarioSeen",
    "StepSeen",
    "Stray",
    "Term",
    "Tie",
    "Use",
    "bits",
]

SCHEMA_VERSION = 1


@dataclass
class Difference:
    """Tensors that are not the same on every rank where they must be."""

    what: str
    """gradients (after the reduction), parameters (after the step) or buffers."""
    step: int
    names: list[str]


@dataclass
class Mismatch:
    """What differs between the ranks' models at the wrap."""

    what: str
    """names, shapes, dtypes, order, values (after the wrap) or buffers."""
    names: list[str]
    text: str
    place: Place | None = None


@dataclass
class Reference:
    """The reduced gradient of the first step, beside that of the global batch on one process; a number per parameter."""

    accumulate: int = 1
    declared: bool = True
    """Whether the reference follows the spec's loss; else the user's own step, whose accumulation it then shares."""
    names: list[str] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """The length of the reference."""
    factors: list[float] = field(default_factory=list)
    """By which the reduced gradient is longer along the reference: 1 where they agree."""
    rests: list[float] = field(default_factory=list)
    """The length of what of the reduced gradient does not lie along the reference."""


@dataclass
class Outcome:
    """What DDP did in the real run; under ``run.engine=simulate``, what it would do."""

    outcome: str = "ok"
    """ok, error, hang or crashed; unknown where a simulation cannot tell."""
    ranks: list[int] = field(default_factory=list)
    """The ranks that left the others (not those that only lost their peer)."""
    step: int | None = None
    phase: str = ""
    message: str = ""


@dataclass
class ScenarioSeen:
    name: str
    model: int = 0
    """Index into Evidence.models."""
    ranks: list[RankSeen] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    differences: list[Difference] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    causes: dict[str, Cause] = field(default_factory=dict)
    """Subject -> cause; subjects are ``parameter:NAME``, ``output:PATH``, ``term:NAME``, ``loss:``, ``ranks:`` ..."""
    accumulate: int = 1
    mode: str = "train"
    custom_step: bool = False
    """Whether the user's own ``step`` ran (outputs and terms are then known only from hooks)."""
    spec: dict[str, Any] = field(default_factory=dict)
    """What of Evidence.spec is another in its job (a sweep over run.world_size, over ddp, ...)."""
    branches: list[Branch] | None = None
    """None where branches were not traced."""
    derivatives: list[Derivative] | None = None
    """None where numerical derivatives were not taken."""
    by_term: dict[str, list[float | None]] | None = None
    """Loss term -> per parameter, the largest absolute value of what the term adds to the gradient of the total in the
    first step on rank 0, None where the term does not lead to it; None where that was not taken apart (run.by_term)."""
    reference: Reference | None = None
    """None where no single-process reference was computed (run.reference)."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Aspect (gradients, ranks, loss, terms, outputs, model, optimizer, steps, ...; see ScenarioView.why_unknown) -> why it could not be observed."""
    partly: dict[str, str] = field(default_factory=dict)
    """Aspect -> why not all is known of it: what was found is certain, a clean result is not."""


@dataclass
class Evidence:
    spec: dict[str, Any]
    """model, world_size, steps, engine, ddp, seed; ddp_keywords (those that the installed torch has), where known."""
    models: list[Model] = field(default_factory=list)
    scenarios: list[ScenarioSeen] = field(default_factory=list)
    tried: dict[str, str] = field(default_factory=dict)
    """``keyword=value`` (value as in YAML) -> what DDP did with it, where it was tried (run.try_settings)."""
    version: str = ""
    schema_version: int = SCHEMA_VERSION
