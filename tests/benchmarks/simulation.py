"""What fits no machine: a Llama of 70 billion parameters; and 1,024 ranks with 8 distinct batches beside 8 ranks."""

import dataclasses
import time

from measure import ROOT, Command, Row, interleaved, median, peak_memory, ratio, spread

LLAMA = {"model": {"_target_": "tests.benchmarks.models.Llama"},
         "loss": {"terms": {"_target_": "tests.benchmarks.models.next_token"}},
         "scenario": {"long": {"batch": {"tokens": {"shape": [1, 4096], "integers": [0, 128256]}}}},
         "run": {"world_size": 2, "steps": 1, "engine": "simulate", "timeout": 300}}
DISTINCT = 8


def simulation(rounds: int) -> list[Row]:
    few = max(1, rounds // 2)
    command = Command("llama", [*_python(), "llama"], ROOT)
    seconds, processor = zip(*(command.run() for _ in range(few)), strict=True)
    seen = interleaved({str(n): (lambda n=n: ranks(n)) for n in (DISTINCT, 1024)}, few)
    more, more_spread = ratio(seen["1024"], seen[str(DISTINCT)])
    return [
        Row("simulate a Llama of 70.6 billion parameters, 1 step, all rules", median(seconds), "s", spread(seconds), 20.0),
        Row("its processor time", median(processor), "s", spread(processor), 20.0),
        Row("its peak memory (shared pages once)", peak_memory(command), "MiB", "", 1536.0),
        Row(f"simulate {DISTINCT} ranks, 3 steps, judged", median(seen[str(DISTINCT)]), "s", spread(seen[str(DISTINCT)])),
        Row(f"1,024 ranks with {DISTINCT} distinct batches against {DISTINCT} ranks", more, "x", more_spread, 1.3),
    ]


def _python() -> list[str]:
    import sys
    return [sys.executable, __file__]


def _lint(plain: dict, lint: tuple[str, ...] = ()) -> None:
    """Simulate and judge; RuntimeError where an outcome is not ok."""
    from ddplint.check import check
    from ddplint.compose import parse
    from ddplint.record import record
    from ddplint.rules import catalogue

    spec = parse({**plain, "checklist": {name: {"rules": [name]} for name in catalogue()}}, folder=str(ROOT),
                 installed=list(catalogue()))
    spec = dataclasses.replace(spec, lint=lint or spec.lint)
    report = check(record(spec), spec.judgement)
    if any(scenario.outcome != "ok" for scenario in report.scenarios) or report.broken:
        raise RuntimeError(f"{report.scenarios} {report.broken}")


def ranks(count: int) -> float:
    """Seconds for so many ranks, of which each eighth gets the same batch."""
    batches = {f"s{i}": {"batch": {"tokens": {"shape": [2, 64 + i], "integers": [0, 1000]}}} for i in range(DISTINCT)}
    plain = {"model": {"_target_": "tests.benchmarks.models.GPT2", "words": 1000},
             "loss": {"terms": {"_target_": "tests.benchmarks.models.next_token"}},
             "scenario": {**batches, "mixed": {"ranks": list(batches)}},
             "run": {"world_size": count, "steps": 3, "engine": "simulate", "timeout": 300}}
    start = time.perf_counter()
    _lint(plain, ("mixed",))
    return time.perf_counter() - start


if __name__ == "__main__":
    _lint(LLAMA)
