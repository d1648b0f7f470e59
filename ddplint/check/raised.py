"""A problem on its way to a finding."""

from dataclasses import dataclass, field

from ddplint.report import KINDS
from ddplint.rules.base import Problem, Rule


@dataclass
class Raised:
    """What one rule said about one view."""

    rule: Rule
    problem: Problem
    kind: str
    """What the view was: parameters, outputs, terms, modules, scenarios, ..."""
    subjects: list[str]
    """The names that ``match``, ``ignore`` and ``accept`` look at."""
    scenarios: list[str]
    model: int
    severity: str
    about: frozenset[str]
    accepted: str | None = None
    explained_by: "Raised | None" = None
    explains: dict[str, int] = field(default_factory=dict)
    ends_ddp: bool = False
    """It tells a failure that DDP met, its own or one that it explains."""

    @property
    def specific(self) -> int:
        """Of two that tell one fault the more specific speaks."""
        return self.rule.specific if self.problem.specific is None else self.problem.specific

    @property
    def speaks(self) -> bool:
        return self.explained_by is None

    @property
    def counts(self) -> bool:
        """Whether it fails a checklist item."""
        return self.accepted is None and self.severity in ("error", "warning")


def raise_(rule: Rule, problem: Problem, kind: str, name: str, scenarios: list[str], model: int, severity: str) -> Raised:
    """Fill what the problem leaves to its view: the subject itself, what it is about, its severity."""
    if problem.subject is not None:
        kind, subjects = problem.subject, getattr(problem, problem.subject)
    elif kind in KINDS:
        subjects, own = [name], getattr(problem, kind)
        if name not in own:
            own.insert(0, name)
    else:
        subjects = next((getattr(problem, k) for k in KINDS if getattr(problem, k)), scenarios)
    about = problem.about or ((f"{kind.rstrip('s')}:{name}",) if kind in KINDS else (f"{rule.name}:{name}",))
    return Raised(rule, problem, kind, list(subjects), problem.scenarios or scenarios, model,
                  problem.severity or severity, frozenset(about))
