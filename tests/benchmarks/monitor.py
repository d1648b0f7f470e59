"""A step of GPT-2 small under DDP with ddplint.monitor: plain (twice), between samples and sampled, in turn in the same ranks."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from measure import KEEP_PAGES, Row, environment, quartiles, rotated, spread, torchrun

BATCH, LENGTH = 1, 128


def monitor(rounds: int) -> list[Row]:
    ended = subprocess.run(torchrun(Path(__file__), str(6 * rounds)), env=environment() | KEEP_PAGES, text=True, check=True,
                           capture_output=True)
    wall, processor = json.loads(ended.stdout.splitlines()[-1])

    def against(seconds: dict, name: str) -> tuple[float, str, str]:
        return quartiles(seconds[name], seconds["plain"], seconds["again"])
    # Judged by the processor time of rank 0, which does all of a monitor's work: other load on the machine leaves it alone.
    always, none = against(processor, "sampled"), against(processor, "between")
    words = f"GPT-2 small, batch {BATCH} x {LENGTH} tokens, 2 ranks"
    return [
        Row(f"{words}: a step without a monitor", statistics.median(wall["plain"]), "s", spread(wall["plain"])),
        Row("the same again against it", *quartiles(processor["again"], processor["plain"])),
        Row("every=1: a sampled step, exchange and judgement included", *always, 1.10),
        Row("every=1, by the clock on the wall", *against(wall, "sampled")),
        Row("a step between samples", *none),
        Row("every=100: 99 steps between and one sampled", (99 * none[0] + always[0]) / 100, "x", "from the two above", 1.01),
    ]


def rank(rounds: int) -> None:
    import torch
    import torch.distributed as dist
    from transformers import GPT2Config, GPT2LMHeadModel

    from ddplint.monitor import watch

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(GPT2LMHeadModel(GPT2Config()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    watching = watch(model)
    watching._detach()

    def step() -> tuple[float, float]:
        tokens = torch.randint(50257, (BATCH, LENGTH))
        dist.barrier()
        start = time.perf_counter(), time.process_time()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        watching._finish()
        dist.barrier()
        return time.perf_counter() - start[0], time.process_time() - start[1]

    def watched(every: int) -> tuple[float, float]:
        watching.every, watching._boundary = every, True
        watching._attach()
        try:
            return step()
        finally:
            watching._detach()

    tasks = {"plain": step, "again": step, "between": lambda: watched(10 ** 9), "sampled": lambda: watched(1)}
    seconds = {name: [] for name in tasks}
    for _ in range(4):
        watched(1)                  # past the first steps, which are always sampled; fills the window
    for number in range(rounds):
        for name in rotated(list(tasks), number):
            seconds[name].append(tasks[name]())
    watching.close()
    if dist.get_rank() == 0:
        print(json.dumps([{name: [pair[i] for pair in pairs] for name, pairs in seconds.items()} for i in range(2)]))
    dist.destroy_process_group()


if __name__ == "__main__":
    rank(int(sys.argv[1]))
