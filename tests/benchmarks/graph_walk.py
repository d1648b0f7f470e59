"""The walk over the autograd graph: linear from a thousand to a million nodes, and deep chains do not overflow a stack."""

import time

from measure import Row, median, spread

SIZES = (1_000, 10_000, 100_000, 1_000_000)


def graph_walk(rounds: int) -> list[Row]:
    import torch

    from ddplint.record.graph import key_of, walk

    per_node: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(max(1, rounds // 2)):
        for size in SIZES:
            root = _wide(torch, size)
            start = time.process_time()
            found = walk([key_of(root)])
            per_node[size].append((time.process_time() - start) / len(found.alive) * 1e6)
            _release(found)
    growth = median(per_node[SIZES[-1]]) / median(per_node[SIZES[1]])
    return [*(Row(f"walk of {size:,} nodes, per node", median(times), "us", spread(times, "us")) for size, times in per_node.items()),
            Row("per node: a million nodes against ten thousand", growth, "x", "", 2.0),
            Row("lint step of 10,000 sequential layers", _deep(), "s")]


def _wide(torch, nodes: int):
    """Chains of 500 nodes side by side, joined at the end."""
    leaf, ends = torch.ones(1, requires_grad=True), []
    for _ in range(max(1, nodes // 500)):
        x = leaf
        for _ in range(min(nodes, 499)):
            x = x + 1
        ends.append(x)
    return torch.stack(ends).sum()


def _release(found) -> None:
    order, found.alive = found.alive, []
    order.reverse()
    while order:
        order.pop()


def _deep() -> float:
    """Seconds of an observed step of a chain of 10,000 layers; raises where a stack overflows."""
    import torch
    from models import Chain

    from ddplint.record.structure import Structure

    model = Chain(10_000)
    structure = Structure(model)
    output = model(torch.ones(1, 2))
    start = time.process_time()
    structure.add_outputs(output)
    total = output.sum()
    structure.close({"loss": total}, total)
    total.backward()
    structure.release()
    return time.process_time() - start
