"""The report: verdicts, findings, the settings that fit, and what was examined. Plain data; renderers only print it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ddplint.errors import CANNOT_JUDGE, CLEAN, FOUND
from ddplint.evidence import Cause, Device, Place

PASS, FAIL, NOT_CHECKED, BROKEN = "pass", "fail", "not checked", "broken"
SEVERITIES = ("error", "warning", "note")
KINDS = ("parameters", "outputs", "terms", "modules")
"""The kinds of subject that a finding lists."""
VERDICTS = {CLEAN: "PASS", FOUND: "FAIL", CANNOT_JUDGE: "NOT JUDGED"}
"""Exit status -> the verdict on the whole run; any other status is as CANNOT_JUDGE."""


def use_kind(shares: Iterable[float | None]) -> str:
    """What the ranks' shares of steps with a gradient amount to: always, sometimes, never, differs or unseen."""
    seen = set(shares)
    if not seen or seen == {None}:
        return "unseen"
    if len(seen) > 1:
        return "differs"
    share = seen.pop()
    return "always" if share == 1 else "never" if share == 0 else "sometimes"


@dataclass(kw_only=True)
class Subjects:
    """What a problem is about, and where it was seen."""

    parameters: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)


@dataclass
class Finding(Subjects):
    """One problem, for one group of subjects."""

    rule: str
    severity: str
    message: str
    remedy: str = ""
    group: str = ""
    """The highest common module of the subjects, for the eye: ``vision_tower``."""
    cause: Cause | None = None
    accepted: str | None = None
    """The reason given in ``accept``, where one matches."""
    explains: dict[str, int] = field(default_factory=dict)
    """Rule -> how many of its problems this finding already tells."""
    elements: int = 0
    """How many scalars the parameters hold together."""
    fingerprint: str = ""
    place: Place | None = None
    """Where to look when the cause names no line: the class of the module."""


@dataclass
class ItemVerdict:
    id: str
    title: str
    verdict: str
    """pass, fail, not checked or broken."""
    examined: int = 0
    because: str | None = None
    rules: list[str] = field(default_factory=list)
    absent: bool = False
    """Not checked, for the model has nothing of the kind; other items could not be seen, or are switched off."""


@dataclass
class Setting:
    """A DDP keyword that this evidence speaks to."""

    value: Any
    because: str
    tried: str | None = None


@dataclass
class ScenarioResult:
    name: str
    outcome: str
    ranks: list[int] = field(default_factory=list)
    step: int | None = None
    message: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    """What of the report's spec is another in its job of a sweep."""
    devices: dict[int, Device] = field(default_factory=dict)
    """Rank -> the GPU it ran on, with its peak of memory."""


@dataclass
class Box:
    """A part of the graph picture."""

    name: str
    """A module, an output's path, a term; unique within its kind."""
    kind: str
    """module, output, term or total."""
    state: str = "used"
    """used, partly, sometimes, differs (between ranks), unused or frozen; of an output or term: used or unused."""
    parameters: int = 0
    elements: int = 0
    title: str = ""
    """The module's class, the term's value: what stands beside the name."""


@dataclass
class Link:
    """What flows from one box to another: (kind, name) each."""

    source: tuple[str, str]
    target: tuple[str, str]
    cut: bool = False
    """Whether the gradient does not come back along it."""
    label: str = ""
    """What cuts it, and where: ``detach() models.py:41``."""


@dataclass
class GraphPicture:
    """One scenario's data flow, at the level of modules: modules, outputs, terms, total."""

    scenario: str
    boxes: list[Box] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @property
    def marked(self) -> int:
        """How much of it does not train as it should: of several pictures the one to look at has most."""
        return sum(link.cut for link in self.links) + sum(box.state not in ("used", "frozen") for box in self.boxes)


@dataclass
class LedgerRow:
    """One loss term in one scenario."""

    scenario: str
    term: str
    in_total: bool
    differentiable: bool
    value: float | None = None
    """At the last step seen, on the lowest rank that saw it."""
    weight: float | None = None
    """d total / d term there."""
    reach: dict[str, float] = field(default_factory=dict)
    """Module -> the share of its trainable parameters that the term depends on (through the graph)."""


@dataclass
class Depth:
    """How large the gradient gets at one module; modules are in the order of the parameters."""

    module: str
    largest: dict[str, float] = field(default_factory=dict)
    """Scenario -> the largest absolute local gradient over its parameters, ranks and steps; 0.0 where there was none."""


@dataclass
class TermFlow:
    """What each loss term of one scenario adds to the gradient of the total, in the first step on rank 0."""

    scenario: str
    depths: list[Depth] = field(default_factory=list)
    """``Depth.largest`` by term, without those that do not lead to the module."""
    unknown: str = ""
    """Why it could not be had."""


@dataclass
class Report:
    exit_status: int
    spec: dict[str, Any] = field(default_factory=dict)
    items: list[ItemVerdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """The most telling first. Explained problems are counted in ``Finding.explains``, not listed."""
    scenarios: list[ScenarioResult] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    usage: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Parameter -> scenario -> per rank: the share of steps in which it got a gradient (None where not observed)."""
    broken: dict[str, str] = field(default_factory=dict)
    """Rule -> why it could not judge."""
    unmatched_acceptances: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fail_on: str = "error"
    """The mildest severity that fails the lint."""
    version: str = ""
    place: Place | None = None
    """Where the model's class is defined, for findings that have no line of their own."""
    graph: list[GraphPicture] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    depths: list[Depth] = field(default_factory=list)
    term_flows: list[TermFlow] = field(default_factory=list)
    known: int = 0
    """How many findings the baseline took out."""
    resolved: list[str] = field(default_factory=list)
    """What the baseline holds and this run no longer shows, a line each."""

    @property
    def open_findings(self) -> list[Finding]:
        """The findings that count: not accepted."""
        return [finding for finding in self.findings if finding.accepted is None]

    @property
    def verdict(self) -> str:
        return VERDICTS.get(self.exit_status, VERDICTS[CANNOT_JUDGE])

    def tally(self) -> str:
        """``2 errors, 1 warning, 1 accepted``, ``no findings`` or, beside a baseline, ``no new findings, 3 known``."""
        counts = Counter(finding.severity for finding in self.open_findings)
        parts = [f"{counts[severity]:,} {severity}{'s' if counts[severity] > 1 else ''}"
                 for severity in SEVERITIES if counts[severity]]
        others = {"accepted": len(self.findings) - len(self.open_findings), "known": self.known}
        none = "no new findings" if self.known else "no findings"
        return ", ".join((parts or [none]) + [f"{count:,} {what}" for what, count in others.items() if count])

    def __repr__(self) -> str:
        plural = "" if len(self.scenarios) == 1 else "s"
        return f"<Report {self.verdict}: {self.tally()} in {len(self.scenarios):,} scenario{plural}>"
