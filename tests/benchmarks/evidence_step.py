"""What recording evidence adds to a step of plain DDP: ResNet-50 at 64 pixels and GPT-2 small, no finding.

The loops run in the same two ranks, step by step in turn, each on a copy of the model; whose turn is first changes from
round to round. The plain one is there twice: a round compares the step with evidence with the mean of its two plain
ones, and what they differ by is what this machine can tell apart. The memory of a step is measured in processes of its
own, with the C allocator as it is.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from measure import KEEP_PAGES, ROOT, Row, environment, quartiles, rotated

WARM, RANKS = 1, int(os.environ.get("WORLD_SIZE", "2"))
LOOPS = ("plain", "again", "observed")


def evidence_step(rounds: int) -> list[Row]:
    rows = []
    for name in ("ResNet50", "GPT2"):
        seen = _run(name, LOOPS, 4 * rounds + 2)
        memory = {loop: _run(name, (loop,), 3)["peak"] for loop in ("plain", "observed")}
        rows += [
            Row(f"{name}: a step of plain DDP", statistics.median(seen["plain"]), "s",
                f"{min(seen['plain']):.2f}-{max(seen['plain']):.2f}"),
            Row(f"{name}: the same again against it", *quartiles(seen["again"], seen["plain"])),
            Row(f"{name}: the step with evidence against both", *quartiles(seen["observed"], seen["plain"], seen["again"]), 1.05),
            Row(f"{name}: the same in CPU seconds",
                *quartiles(seen["observed_cpu"], seen["plain_cpu"], seen["again_cpu"]), 1.05),
            Row(f"{name}: peak memory with evidence against without", memory["observed"] / memory["plain"], "x",
                f"{memory['plain']:.0f} MiB plain", 1.05),
        ]
    return rows


def _run(model: str, loops: tuple[str, ...], steps: int) -> dict:
    shared = environment() | (KEEP_PAGES if len(loops) > 1 else {}) | {
        "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, __file__, model, ",".join(loops), str(steps)], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              env=shared | {"RANK": str(rank)}) for rank in range(RANKS)]
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise RuntimeError(f"{model} {loops}: a rank ended with {[rank.returncode for rank in ranks]}")
    return json.loads(said[0].splitlines()[-1])


# ---------------------------------------------------------------------- in a rank


def _spec(model: str, steps: int):
    from ddplint.spec import Loss, Run, Scenario, Spec
    batch = {"image": {"shape": [8, 3, 64, 64]}, "label": {"shape": [8], "integers": [0, 1000]}} if model == "ResNet50" \
        else {"tokens": {"shape": [2, 128], "integers": [0, 50257]}}
    loss = "classify" if model == "ResNet50" else "next_token"
    return Spec({"_target_": f"tests.benchmarks.models.{model}"}, loss=Loss({"_target_": f"tests.benchmarks.models.{loss}"}),
                scenarios={"a": Scenario("a", batch=batch)}, lint=("a",), run=Run(RANKS, steps, device="cpu"), folder=str(ROOT))


class _Plain:
    """The same steps as users write them."""

    def __init__(self, program):
        import torch
        program.resolve()
        self.program = program
        model = program.build().train()
        self.ddp = torch.nn.parallel.DistributedDataParallel(model)
        self.optimizer = program.make_optimizer(model)

    def step(self, number: int) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        batch = self.program.batch(number)
        terms, given = self.program.terms(self.program.forward(self.ddp, batch), batch)
        self.program.total(terms, given).backward()
        self.optimizer.step()

    def watched(self):
        return contextlib.nullcontext()


class _Observed:
    """The steps as a rank of a lint does them."""

    def __init__(self, program):
        from ddplint.record.observe import Observation
        self.observation = Observation(program, lambda kind, body: None)
        self.observation._build()
        with self.observation.watch.active():
            self.observation._make_optimizer(self.observation.model)

    def step(self, number: int) -> None:
        self.observation._run_step(number)

    def watched(self):
        stack = contextlib.ExitStack()
        stack.enter_context(self.observation.watch.active())
        stack.enter_context(self.observation._optimizer_watched())
        return stack


def _rank(model: str, names: list[str], steps: int) -> None:
    import resource

    import torch
    import torch.distributed as dist

    from ddplint.record.program import Program

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    spec, rank = _spec(model, steps), int(os.environ["RANK"])
    loops = {name: (_Observed if name == "observed" else _Plain)(Program(spec, "a", rank, RANKS, torch.device("cpu"))) for name in names}
    found: dict = {f"{name}{what}": [] for name in names for what in ("", "_cpu")}
    for number in range(WARM + steps):
        for name in rotated(names, number):
            with loops[name].watched():
                dist.barrier()
                start, cpu = time.perf_counter(), time.process_time()
                loops[name].step(number)
            if number >= WARM:
                found[name].append(time.perf_counter() - start)
                found[f"{name}_cpu"].append(time.process_time() - cpu)
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found), flush=True)
    dist.barrier()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    _rank(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]))
