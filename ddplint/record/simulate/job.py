"""What the solo process does: every distinct rank of one scenario, one after another.

Sends per rank ``("rank", Said)``, or ``("same", (rank, other))`` where another rank has been fed the same.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist

from ddplint.record.assemble import UNFINISHED
from ddplint.record.batches import Feed
from ddplint.record.simulate.explore import Answers, explore
from ddplint.record.simulate.inputs import Fed, fed
from ddplint.record.simulate.program import FakeProgram
from ddplint.record.simulate.rank import Simulation
from ddplint.record.simulate.said import Said
from ddplint.record.simulate.world import World
from ddplint.record.source import set_folder, user_place
from ddplint.spec import Spec

MOST_ALIKE = 8
"""Ranks with the same input that are simulated each for itself, where the program asks for its rank or draws numbers."""
RANK_VARIABLES = {"RANK", "LOCAL_RANK", "GLOBAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}


def run(spec: Spec, scenario: str, send: Callable[[str, Any], None]) -> bool:
    set_folder(spec.folder)
    known: dict[Any, list[tuple[Fed, Said]]] = {}
    for rank in range(spec.run.world_size):
        _export(rank, spec.run.world_size)
        given = _fed(spec, scenario, rank)
        said = _same(given, known.get(given.shapes, []))
        if said is not None:
            send("same", (rank, said.rank))
            continue
        said = _simulated(spec, scenario, rank, send)
        known.setdefault(given.shapes, []).append((given, said))
        send("rank", said)
    return True


def _fed(spec: Spec, scenario: str, rank: int) -> Fed:
    import torch
    feed = Feed(spec, scenario, rank, spec.run.world_size, torch.device("cpu"))
    accumulate = next((s.accumulate for s in feed.chain(0) if s.accumulate != 1), 1)
    with World().active():
        return fed(feed, spec.run.steps * accumulate, spec.run.real)


def _same(given: Fed, known: list[tuple[Fed, Said]]) -> Said | None:
    """The rank that this one would only repeat."""
    if known and any(said.drew or said.asked for _, said in known):
        return known[len(known) // 2][1] if len(known) >= MOST_ALIKE else None
    for other, said in known:
        if not said.read or other.numbers == given.numbers:
            return said
    return None


def _simulated(spec: Spec, scenario: str, rank: int, send: Callable[[str, Any], None]) -> Said:
    asked: list[Any] = []

    def simulate(answers: Answers, draw: int, armed: bool = True) -> Simulation:
        simulation = Simulation(FakeProgram(World(answers, draw), spec, scenario, rank), send, armed)
        with _rank_asked(asked):
            simulation.observe()
        return simulation
    found = explore(simulate)
    refused = any(kind == "failure" and UNFINISHED in body.message for kind, body in found.messages)
    foreseen = simulate({}, 0, armed=False).messages if refused else []
    return Said(rank, found.messages, found.unknown, found.partly, found.sequence, found.unreduced, found.read, found.drew, asked[:1],
                foreseen, found.split)


def _export(rank: int, world_size: int) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size), LOCAL_WORLD_SIZE=str(world_size))


@contextlib.contextmanager
def _rank_asked(asked: list[Any]) -> Iterator[None]:
    """Note the user's lines that ask for the rank."""
    get_rank, getitem = dist.get_rank, type(os.environ).__getitem__

    def asking(*args: Any, **kwargs: Any) -> int:
        if (place := user_place()) is not None:
            asked.append(place)
        return get_rank(*args, **kwargs)

    def reading(environ: Any, key: str) -> str:
        if key in RANK_VARIABLES and (place := user_place()) is not None:
            asked.append(place)
        return getitem(environ, key)
    dist.get_rank, type(os.environ).__getitem__ = asking, reading
    try:
        yield
    finally:
        dist.get_rank, type(os.environ).__getitem__ = get_rank, getitem
