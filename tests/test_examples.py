"""Every rule on a small program of its own (tests/examples): the broken one fires the rule and no other error, the mended one is clean.

All of them fire on CPU with gloo. Three tell what a more specific rule tells too, which then speaks for both: their files
switch that one off. A line that ends in ``# here`` is the one that the finding must name.

By hand: ``cd tests/examples; ddplint +model=severed-graph``, and again with what the file's first comment says.
"""

import json
from pathlib import Path

import pytest

from ddplint.cli import main
from ddplint.rules import catalogue

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kept_ranks")]
FOLDER = Path(__file__).parent / "examples"
MENDED = "# Mended: "


@pytest.fixture
def lint(monkeypatch, capsys):
    """The exit status and the findings of a lint in the examples' folder."""
    monkeypatch.chdir(FOLDER)

    def run(*argv: str) -> tuple[int, list[dict]]:
        capsys.readouterr()
        status = main([*argv, "report.json=-", "report.terminal=false"])
        ended = capsys.readouterr()
        assert ended.err == ""
        return status, json.loads(ended.out)["findings"]
    return run


def mended(rule: str) -> list[str]:
    """What the example's file says must be changed."""
    comment = (FOLDER / f"configs/model/{rule}.yaml").read_text().splitlines()[1]
    assert comment.startswith(MENDED)
    return comment.removeprefix(MENDED).split()


@pytest.mark.parametrize("rule", list(catalogue()))
def test_broken(rule, lint):
    status, findings = lint(f"+model={rule}")
    lines = (FOLDER / f"{rule.replace('-', '_')}.py").read_text().splitlines()
    for marked in (number for number, line in enumerate(lines, 1) if line.endswith("# here")):
        assert [finding["cause"]["line"] for finding in findings if finding["rule"] == rule] == [marked]
    assert rule in {finding["rule"] for finding in findings}
    assert {finding["rule"] for finding in findings if finding["severity"] == "error"} <= {rule}
    assert status == (1 if any(finding["severity"] == "error" for finding in findings) else 0)


@pytest.mark.parametrize("rule", list(catalogue()))
def test_mended(rule, lint):
    assert lint(f"+model={rule}", *mended(rule)) == (0, [])
