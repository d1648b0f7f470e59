"""How long until something runs: the fork server, a gang, a job, a solo process; each in this process, warm."""

import time
from pathlib import Path

from measure import Row, median, spread

FOLDER = Path(__file__).resolve().parent.parent / "faulty"


def startup(rounds: int) -> list[Row]:
    from ddplint.record.gang import Gang
    from ddplint.spec import Run, Spec

    spec = Spec(model={}, run=Run(device="cpu"), folder=str(FOLDER))
    first = _seconds(lambda: Gang(spec).run("jobs:pids"))
    gangs, jobs, solos = [], [], []
    for _ in range(5 * rounds):
        with Gang(spec) as gang:
            gangs.append(_seconds(lambda gang=gang: gang.run("jobs:pids")))
            jobs.append(_seconds(lambda gang=gang: gang.run("jobs:pids")))
            solos.append(_seconds(lambda gang=gang: gang.solo("jobs:alone", words="")))
    return [
        Row("fork server (imports torch) and the first gang of two", first, "s"),
        Row("a gang of two, warm", median(gangs), "s", spread(gangs), 0.3),
        Row("an empty job on a gang that runs", median(jobs), "s", spread(jobs)),
        Row("a solo process, warm", median(solos), "s", spread(solos)),
    ]


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
