"""A rule's manual, from its docstring: for ``ddplint explain``, the README's table, SARIF and HTML."""

from dataclasses import dataclass, field

from ddplint.render.text import clean

CODE = ("Bad", "Good", "Options")


@dataclass(frozen=True)
class Page:
    """One rule's page. A house rule, which is known to its own run only, has a page without sections."""

    name: str
    severity: str = "warning"
    checks: tuple[str, ...] = ()
    summary: str = "A house rule."
    sections: dict[str, str] = field(default_factory=dict)
    """Heading -> text, in the order of the docstring."""
    options: dict[str, object] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """The reason in one paragraph."""
        return " ".join((self.sections.get("Why it matters") or self.summary).split("\n\n")[0].split())

    @property
    def text(self) -> str:
        """For a terminal: the headings, their text indented."""
        parts = [f"{self.name} ({self.severity})", self.summary]
        parts += [f"{heading}\n{_indented(body)}" for heading, body in self._all_sections().items()]
        return "\n\n".join(parts)

    @property
    def markdown(self) -> str:
        parts = [f"**{self.summary}**"]
        parts += [f"### {heading}\n\n{f'```python{chr(10)}{body}{chr(10)}```' if heading in CODE else body}"
                  for heading, body in self._all_sections().items()]
        return "\n\n".join(parts)

    def _all_sections(self) -> dict[str, str]:
        options = "\n".join(f"rules.{self.name}.{name}={value}" for name, value in self.options.items())
        return self.sections | ({"Options": options} if options else {})


def _indented(body: str) -> str:
    return "\n".join(f"  {line}" if line.strip() else "" for line in body.split("\n"))


def page(name: str) -> Page:
    from ddplint.rules import catalogue
    rule = catalogue().get(name)
    return page_of(rule) if rule is not None else Page(clean(name))


def page_of(rule: object) -> Page:
    """The page of a ``ddplint.rules.Rule``."""
    return Page(rule.name, rule.severity, rule.checks, rule.summary, rule.manual, rule.options)


def pages() -> list[Page]:
    """All shipped rules, errors first, then by name."""
    from ddplint.report import SEVERITIES
    from ddplint.rules import catalogue
    order = {severity: i for i, severity in enumerate(SEVERITIES)}
    return sorted(map(page_of, catalogue().values()), key=lambda page: (order.get(page.severity, len(order)), page.name))
