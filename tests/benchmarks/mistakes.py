"""How long until a mistake that needs no model is told, with status 2: a process from its start to its end.

The target holds on an idle machine.
"""

import tempfile
from pathlib import Path

from measure import Command, Row, ddplint, interleaved, median, spread

TARGET = 2.0
FILES = {
    "tab": "model:\n\t_target_: x\n",
    "cycle": "# @package _global_\nloss:\n  terms: ${other}\nother: ${loss.terms}\n",
    "long": "".join(f"k{i}: {i}\n" for i in range(100_000)),
    "bomb": "a0: &a0 [1, 1, 1, 1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
    "deep": "a: " + "[" * 3000 + "]" * 3000,
    "mine": "# @package _global_\nmodel: {_target_: net.Net}\nscenario: {a: {batch: {shape: [2]}}}\n",
}
MISTAKES = {
    "an unknown command": ["rulse"],
    "an unknown model": ["+model=mien"],
    "an unknown key": ["+model=mine", "run.stesp=2"],
    "a wrong type": ["+model=mine", "run.steps=two"],
    "a reference to a missing scenario": ["+model=mine", "+scenario.b.ranks=[a,c]"],
    "a tab in a file": ["+model=tab"],
    "a cyclic interpolation": ["+model=cycle"],
    "a file of 100,000 lines": ["+model=long"],
    "an alias bomb": ["+model=bomb"],
    "a deeply nested file": ["+model=deep"],
    "evidence that was cut short": ["evidence=cut.json"],
}


def mistakes(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "configs/model").mkdir(parents=True)
        for file, text in FILES.items():
            (folder / f"configs/model/{file}.yaml").write_text(text)
        (folder / "cut.json").write_text('{"schema_version": 1, "spec"')
        commands = [Command(what, ddplint(*argv), folder, status=2) for what, argv in MISTAKES.items()]
        seen = interleaved({c.name: (lambda c=c: c.run()[0]) for c in commands}, rounds)
    return [Row(f"{what}, told", median(times), "s", spread(times), TARGET) for what, times in seen.items()]
