"""Commands that run nothing of the user's beside the start of python itself."""

import sys
import sysconfig
import tempfile
from pathlib import Path

from measure import Command, Row, interleaved, median, ratio, spread

SCRIPT = str(Path(sysconfig.get_path("scripts")) / "ddplint")
ANSWERS = {"--version": 2.0, "rules": 2.0, "explain unused-parameter": None}


def answers(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = [Command("python", [sys.executable, "-c", "pass"], folder),
                    *(Command(what, [SCRIPT, *what.split()], folder) for what in ANSWERS)]
        seen = interleaved({c.name: (lambda c=c: c.run()[0]) for c in commands}, 4 * rounds)
    rows = [Row("python, starting", median(seen["python"]), "s", spread(seen["python"]))]
    return rows + [Row(f"ddplint {what}, against that", *_times(seen[what], seen["python"]), target) for what, target in ANSWERS.items()]


def _times(above: list[float], below: list[float]) -> tuple[float, str, str]:
    value, around = ratio(above, below)
    return value, "x", around
