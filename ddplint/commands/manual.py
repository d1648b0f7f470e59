"""``ddplint rules`` and ``ddplint explain RULE``: the manual on the command line."""

import argparse
import difflib
import json
from pathlib import Path

from ddplint.errors import DdplintError
from ddplint.render.manual import Page, pages

BEGIN, END = "<!-- rules: python -m ddplint.commands.manual -->", "<!-- /rules -->"


def rules(argv: list[str]) -> int:
    """The table of the shipped rules."""
    parser = argparse.ArgumentParser(prog="ddplint rules", description="The shipped rules: name, severity, what it finds.")
    parser.add_argument("--format", choices=("text", "json", "md"), default="text", help="default: text")
    chosen = parser.parse_args(argv).format
    print({"text": rule_table, "json": _json, "md": rule_table_markdown}[chosen]())
    return 0


def explain(argv: list[str]) -> int:
    """One rule's page. Raises DdplintError, with the nearest name, for a rule that does not exist."""
    parser = argparse.ArgumentParser(prog="ddplint explain", description="What a rule finds, why it matters, what to do.")
    parser.add_argument("rule", help="a name from 'ddplint rules'")
    print(find(parser.parse_args(argv).rule).text)
    return 0


def find(name: str) -> Page:
    by_name = {page.name: page for page in pages()}
    wanted = name.strip().lower().replace("_", "-")
    if wanted not in by_name:
        near = difflib.get_close_matches(wanted, by_name, 1)
        hint = f"did you mean 'ddplint explain {near[0]}'?" if near else "'ddplint rules' lists them"
        raise DdplintError(f"no rule is called '{name}'; {hint}")
    return by_name[wanted]


def rule_table() -> str:
    """One line per rule. ``ddplint.start`` prints the copy of it in ``rules.txt``."""
    every = pages()
    names = max(len(page.name) for page in every)
    return "\n".join(f"{page.name:{names}}  {page.severity:7}  {page.summary}" for page in every)


def _json() -> str:
    return json.dumps([{"name": page.name, "severity": page.severity, "checks": list(page.checks), "summary": page.summary,
                        "options": page.options, "manual": page.sections} for page in pages()], indent=1, default=str)


def rule_table_markdown() -> str:
    """The table in the README."""
    rows = [f"| `{page.name}` | {page.severity} | {page.summary.replace('|', chr(92) + '|')} |" for page in pages()]
    return "\n".join(["| rule | severity | finds |", "|-|-|-|", *rows])


def with_rule_table(readme: str) -> str:
    """The README with the table between its two markers made anew; unchanged where it has none."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{rule_table_markdown()}\n{end}{after}" if begin and end else readme


if __name__ == "__main__":       # python -m ddplint.commands.manual: after a rule was added or its summary changed
    Path(__file__).with_name("rules.txt").write_text(rule_table() + "\n", encoding="utf-8")
    readme = Path(__file__).parents[2] / "README.md"
    readme.write_text(with_rule_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
