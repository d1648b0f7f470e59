"""The spec: the composed configuration of one lint, validated. Plain data that can be sent to a rank.

A *node* is a mapping with ``_target_`` (a dotted path) and keywords; it is resolved only in a rank, because
resolving it imports the user's code and torch.
"""

from dataclasses import dataclass, field
from typing import Any

Node = dict[str, Any]
SEVERITIES = ("error", "warning", "note", "off")
MODES = ("train", "eval")


@dataclass(frozen=True)
class Loss:
    terms: Any = None
    """A path (``output.loss``), a mapping of name -> path or term node, or a node called ``(outputs, batch)``."""
    total: Node | None = None
    """A node called ``(terms) -> scalar``; None is the weighted sum."""


@dataclass(frozen=True)
class Scenario:
    """What each rank is fed at each step. Exactly one of the five sources is set."""

    name: str
    batch: Any = None
    """A node, or a (nested) mapping of tensor descriptions."""
    loader: Node | None = None
    """A node that gives an iterable; step i takes item i."""
    file: str | None = None
    """Read by ``torch.load(weights_only=True)``."""
    ranks: tuple[str, ...] = ()
    """Rank r takes entry r (repeated) of these scenario names."""
    sequence: tuple[str, ...] = ()
    """Step s takes entry s (repeated) of these scenario names."""
    set: dict[str, Any] = field(default_factory=dict)
    """Attributes assigned on the model, by dotted path, before the first step."""
    mode: str = "train"
    """The model is put into it before the first step; parts that were built frozen and in eval mode stay in that."""
    autocast: str | None = None
    """A torch dtype's name (``bfloat16``), or None."""
    budget: int | None = None
    """Of a search for inputs rather than a scenario: how many are tried."""
    accumulate: int = 1
    """Micro-batches per optimizer step; all but the last run under ``no_sync``."""


@dataclass(frozen=True)
class Run:
    world_size: int = 2
    steps: int = 3
    device: str = "auto"
    """``auto`` (a GPU where there is any), ``cpu`` or ``cuda``."""
    backend: str = "auto"
    """``auto``, ``gloo`` or ``nccl``."""
    timeout: float = 60.0
    """Seconds that a gang may go without any progress before it counts as hung."""
    seed: int = 0
    engine: str = "local"
    """``local``, ``torchrun`` or ``simulate``."""
    try_settings: bool = False
    try_remedies: bool = False
    """Whether mechanical remedies are tried under real DDP too; with the settings."""
    reference: bool = False
    """Whether the first step's gradient is compared with that of the global batch on one process."""
    explore: dict[str, int] = field(default_factory=dict)
    """``budget``: how many inputs ``+scenario=explore`` tries."""
    real: tuple[str, ...] = ()
    by_term: bool | None = None
    """Whether the gradient is taken apart by loss term; None: where an HTML report is written."""
    causes: bool = True
    """Whether findings about parameters, outputs and terms get a solo run that looks for their cause."""


@dataclass(frozen=True)
class RuleSetting:
    severity: str | None = None
    """None keeps the rule's own."""
    ignore: tuple[str, ...] = ()
    """Globs over subject names that the rule passes over."""
    options: dict[str, Any] = field(default_factory=dict)
    target: str | None = None
    """Dotted path of a house rule in the user's code."""


@dataclass(frozen=True)
class Item:
    """One line of the checklist, backed by rules or by an expectation."""

    id: str
    title: str = ""
    rules: tuple[str, ...] = ()
    expect: dict[str, Any] | None = None
    match: tuple[str, ...] = ()
    """Globs over subject names; empty is all."""
    scenarios: tuple[str, ...] = ()
    severity: str | None = None


@dataclass(frozen=True)
class Acceptance:
    rule: str
    match: str
    because: str
    scenarios: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportOptions:
    fail_on: str = "error"
    verbose: bool = False
    terminal: bool = True
    evidence: str | None = None
    baseline: str | None = None
    update_baseline: bool = False
    files: dict[str, str] = field(default_factory=dict)
    """Format name (json, sarif, junit, github, gitlab, markdown, html) -> path, or ``-`` for stdout."""


@dataclass(frozen=True)
class Judgement:
    """How evidence is judged: everything that ``ddplint evidence=run.json`` needs beside the evidence."""

    rules: dict[str, RuleSetting] = field(default_factory=dict)
    checklist: tuple[Item, ...] = ()
    accept: tuple[Acceptance, ...] = ()
    fail_on: str = "error"


@dataclass(frozen=True)
class Spec:
    model: Node
    forward: Any = None
    """None, a mapping of forward()'s arguments to paths (``batch.image``), or a node called ``(model, batch)``."""
    loss: Loss = field(default_factory=Loss)
    optimizer: Node | None = None
    step: Node | None = None
    """A node called ``(model, batch, optimizer)``: the user's own loop body."""
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    """All that can be referred to; ``lint`` names those that are run."""
    lint: tuple[str, ...] = ()
    explore: int = 0
    """How many other inputs are tried, from those in ``lint``."""
    ddp: dict[str, Any] = field(default_factory=dict)
    run: Run = field(default_factory=Run)
    judgement: Judgement = field(default_factory=Judgement)
    report: ReportOptions = field(default_factory=ReportOptions)
    folder: str = "."
    """Where the lint was started: importable in the ranks, and what places are relative to."""
