"""Real output in the README: ``<!-- excerpt: FILE -->`` names the test file that keeps the block below it true.

A block begins with the command (``$ ddplint ...``), where one shows it. ``...`` alone on a line stands for what is left out.
"""

import re
import shlex
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
EXCERPT = re.compile(r"<!-- excerpt: (\S+) -->\n```text\n(?:\$ ddplint (.*)\n)?((?:.*\n)*?)```")
MEASURED = re.compile(r"\d+\.\d\d\b|\d+(?= pairs of steps)")


def excerpts() -> dict[str, tuple[list[str], str]]:
    """Test file -> (arguments of the command, what it prints)."""
    return {match[1]: (shlex.split(match[2] or ""), match[3]) for match in EXCERPT.finditer(README.read_text())}


def command(test: str) -> list[str]:
    return excerpts()[Path(test).name][0]


def slurm_line() -> list[str]:
    return shlex.split(re.search(r"^ddplint (.*submitit_slurm.*)$", README.read_text(), re.MULTILINE)[1])


def assert_shown(test: str, out: str) -> None:
    """Every part of the excerpt stands in the output, in its order; lines may be wrapped elsewhere, and ratios be others."""
    real, at = _plain(out), 0
    for part in re.split(r"^\.\.\.$", excerpts()[Path(test).name][1], flags=re.MULTILINE):
        found = real.find(_plain(part), at)
        assert found >= 0, f"not in the output, or not in this order: {_plain(part)}"
        at = found + len(_plain(part))


def _plain(text: str) -> str:
    return MEASURED.sub("N", " ".join(text.split()))
