"""All benchmarks, or those named: ``python tests/benchmarks/run.py [NAME ...] [--rounds 5] [--json FILE]``.

A benchmark is a function of ``rounds`` in a file of its name in this folder; it returns rows. The status is 1 where a
target is missed.
"""

import argparse
import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

NAMES = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in ("run", "measure", "models"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    rows = []
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds\n")
    print(f"{'work':64} {'median':>9}    {'target':>8}  {'':6}  spread")
    for name in options.names or NAMES:
        for row in getattr(importlib.import_module(name), name)(options.rounds):
            target = "" if row.target is None else f"<= {row.target:g}"
            print(f"{row.work:64} {row.value:9.3f} {row.unit:2} {target:>8}  {row.verdict:6}  {row.spread}", flush=True)
            rows.append({"benchmark": name, **asdict(row), "verdict": row.verdict})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(row["verdict"] == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
