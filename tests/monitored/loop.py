"""A plain loop under torchrun: ``loop.py FOLDER FAULT ...`` trains six steps for each fault, and prints what rank 0 told."""

import json
import sys

import torch
import torch.distributed as dist
from ddplint.examples.multitask import MultiTaskNet
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from ddplint.monitor import watch

STEPS, BROKEN = 6, 3


def train(fault: str, folder: str) -> list:
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(MultiTaskNet(10, 20), find_unused_parameters=fault == "dropped-under-the-flag")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    collectives, gather = [], dist.all_gather
    dist.all_gather = lambda *args, **kwargs: collectives.append(1) or gather(*args, **kwargs)
    with watch(model, every=100 if fault.endswith("last") else 2, json=f"{folder}/{fault}.jsonl") as monitor:
        for step in range(STEPS):
            output = model(torch.randn(4, 3, 32, 32))
            cls = cross_entropy(output["cls"], torch.randint(10, (4,)))
            seg = cross_entropy(output["seg"], torch.randint(20, (4, 8, 8)))
            if fault == "nan" and step == 4 and rank == 1:
                seg = seg * float("nan")
            monitor.terms(cls=cls, seg=seg)
            dropped = (fault.startswith("dropped") or (fault == "at-the-last" and step == STEPS - 1)
                       or (fault == "on-one-rank-at-the-last" and step == STEPS - 1 and rank == 1))
            optimizer.zero_grad()
            (cls if dropped else cls + 0.5 * seg).backward()
            optimizer.step()
            if fault == "drift" and step == BROKEN:
                with torch.no_grad():
                    model.module.cls_head.weight.add_(rank)
    dist.all_gather = gather
    return [len(collectives), [[f.rule, f.message, f.parameters, f.ranks, f.steps, f.cause.text] for f in monitor.findings]]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    told = {}
    for fault in sys.argv[2:]:
        try:
            told[fault] = train(fault, sys.argv[1])
        except RuntimeError as error:
            told[fault] = str(error)
    if dist.get_rank() == 0:
        print(json.dumps(told))
    dist.destroy_process_group()
