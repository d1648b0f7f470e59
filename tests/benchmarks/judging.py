"""An evidence file of 200 scenarios x 5,000 parameters: read, judged and rendered."""

import random
import sys
import tempfile
from pathlib import Path

from measure import ROOT, Command, Row, median, peak_memory, spread

SCENARIOS, PARAMETERS, RANKS, STEPS = 200, 5_000, 2, 3


def judging(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "evidence.json")
        sys.path.insert(0, str(ROOT))
        from ddplint.evidence_file import to_json
        file.write_text(to_json(evidence()), encoding="utf-8")
        size = file.stat().st_size / 2**20
        command = Command("judge", [sys.executable, "-m", "ddplint", f"evidence={file}"], Path(name), status=1)
        seconds, processor = zip(*(command.run() for _ in range(max(1, rounds // 2))), strict=True)
        memory = peak_memory(command)
    work = f"{SCENARIOS} scenarios x {PARAMETERS:,} parameters"
    return [Row(f"judge and render {work} from a file", median(seconds), "s", spread(seconds), 5.0),
            Row("its processor time", median(processor), "s", spread(processor), 5.0),
            Row("its peak memory", memory, "MiB", "", 500.0), Row("the evidence file", size, "MiB", "", 50.0)]


def evidence():
    """Blocks of ten parameters; in each scenario one block gets no gradient."""
    from ddplint.evidence import (
        Evidence,
        Graph,
        Model,
        Module,
        Output,
        Parameter,
        RankSeen,
        ScenarioSeen,
        StepSeen,
        Term,
    )

    draw = random.Random(0)
    model = Model("Net", [Parameter(f"block{i // 10}.p{i % 10}", [64, 64], "float32", True, f"block{i // 10}") for i in range(PARAMETERS)],
                  [Module(f"block{i}", "Block") for i in range(PARAMETERS // 10)])

    def scenario(number: int) -> ScenarioSeen:
        missing = number * 10 % PARAMETERS
        used = ((1 << PARAMETERS) - 1) & ~(0x3FF << missing)
        use = "".join("." if missing <= i < missing + 10 else "1" for i in range(PARAMETERS))
        graph = Graph([Output("y", [4], "float32", True, True, f"{used:x}", ["loss"], True)], [Term("loss", True, f"{used:x}", True)],
                      f"{used:x}", {f"block{i}": 1 for i in range(PARAMETERS // 10) if i != missing // 10})
        ranks = [RankSeen(rank, steps=[StepSeen(s, "done", 0, use, values={"loss": 1.0}, total=1.0, total_differentiable=True,
                                                total_shape=[]) for s in range(STEPS)],
                          graphs=[graph], size=[float(f"{draw.lognormvariate(-5, 2):.3g}") for _ in range(PARAMETERS)])
                 for rank in range(RANKS)]      # sizes are noted to three digits
        return ScenarioSeen(f"s{number}", ranks=ranks)
    return Evidence({"model": "net", "world_size": RANKS, "steps": STEPS, "engine": "local", "ddp": {}, "seed": 0}, [model],
                    [scenario(i) for i in range(SCENARIOS)])
