"""What a rule is: a function from a view to a problem, its manual in its docstring, its options in its keywords.

    @rule(severity="error", checks="gradients")
    def unused_parameter(parameter: ParameterView, *, smallest: int = 0) -> Problem | None:
        '''A trainable parameter gets no gradient on any rank. ...'''

The annotation of the first parameter says what the framework iterates over; keywords with defaults are the rule's
options in YAML (``rules: {unused-parameter: {smallest: 10}}``).
"""

import difflib
import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ddplint.errors import SpecError
from ddplint.evidence import Cause
from ddplint.report import Subjects
from ddplint.spec import SEVERITIES
from ddplint.views import VIEWS

HEADINGS = ("Why it matters", "Bad", "Good", "When it is fine")


@dataclass
class Problem(Subjects):
    """What a rule says about one view. Equal problems of neighbours become one finding.

    Its own scenario need not be named, save by a rule that looks at the whole run.
    """

    message: str
    """Completes "SUBJECT: ..."; ``{ranks}`` and ``{steps}`` stand for those of the whole finding."""
    cause: Cause | None = None
    remedy: str = ""
    """What to do; ``{group}`` stands for the name of the whole finding's subject."""
    severity: str | None = None
    """None: the rule's own."""
    subject: str | None = None
    """Which of the four lists the problem is about, where its view is none of them (parameters, outputs, ...)."""
    about: tuple[str, ...] = ()
    """The subjects, as ``parameter:NAME``; a more specific rule that tells them all explains this problem.
    Default: the view itself."""
    covers: tuple[str, ...] = ()
    """What else this problem tells, so that less specific rules need not: ``failure:unfinished``, ``desync``, ..."""
    specific: int | None = None
    """None: the rule's own."""


@dataclass(frozen=True)
class Rule:
    name: str
    function: Callable[..., Any]
    severity: str
    checks: tuple[str, ...]
    """The aspects of the evidence it needs; see ScenarioView.why_unknown."""
    specific: int
    """Of two rules that tell one fault the more specific speaks."""
    among: str | None = None
    """For parameters: only those in this list of ScenarioView or UseTable can have the problem, the rest pass unseen."""

    @functools.cached_property
    def view(self) -> type:
        """The class of view that the rule looks at."""
        first = next(iter(inspect.signature(self.function).parameters), None)
        kind = typing.get_type_hints(self.function).get(first) if first else None
        if kind not in VIEWS:
            names = ", ".join(view.__name__ for view in VIEWS)
            raise SpecError(f"rule '{self.name}' does not say what it looks at",
                            hint=f"annotate its first parameter with one of {names} (from ddplint.views)")
        return kind

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """Option -> default."""
        parameters = list(inspect.signature(self.function).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the manual."""
        return self.doc.split("\n")[0].strip()

    @property
    def manual(self) -> dict[str, str]:
        """Heading -> text, for the headings that the docstring has."""
        sections: dict[str, list[str]] = {}
        current: list[str] = []
        for line in self.doc.split("\n")[1:]:
            if line.strip() in HEADINGS and not line.startswith(" "):
                current = sections.setdefault(line.strip(), [])
            else:
                current.append(line)
        return {heading: inspect.cleandoc("\n" + "\n".join(lines)).strip("\n") for heading, lines in sections.items()}

    def configured(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options as the function takes them. Raises SpecError for an unknown one or one of another type."""
        return {name: self._option(name, value) for name, value in options.items()}

    def _option(self, name: str, value: Any) -> Any:
        where = f"rules.{self.name}.{name}"
        known = [*self.options, "severity", "ignore"]
        if name not in self.options:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(known)}"
            raise SpecError(f"rule '{self.name}' has no option '{name}'", where=where, hint=hint)
        default = self.options[name]
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(default, tuple) and isinstance(value, list):
            return tuple(value)
        if default is not None and type(value) is not type(default):
            raise SpecError(f"expected {type(default).__name__}, found {type(value).__name__} ({value!r})", where=where,
                            hint=f"the default is {default!r}")
        return value


def rule(function: Callable[..., Any] | None = None, *, severity: str = "error", checks: str | tuple[str, ...] = (),
         specific: int = 50, among: str | None = None) -> Any:
    """Make a rule of a function; its name is the function's with dashes. With or without arguments."""
    if severity not in SEVERITIES:
        raise ValueError(f"severity is {severity!r}; expected one of {', '.join(SEVERITIES)}")

    def decorate(function: Callable[..., Any]) -> Rule:
        aspects = (checks,) if isinstance(checks, str) else tuple(checks)
        return Rule(function.__name__.replace("_", "-"), function, severity, aspects, specific, among)
    return decorate if function is None else decorate(function)
