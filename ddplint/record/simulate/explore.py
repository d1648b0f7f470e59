"""A branch on a number that nobody knows: both arms are tried, and what they agree on is certain.

The first run answers every question with yes. For each line that asked, another run answers no there. A parameter
whose state is the same in all runs keeps it; the others get UNSEEN, and the line is named. Where more than yes or no is asked (an
index, an array), another draw is tried: what it agrees on is told, but nothing passes as clean.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from ddplint.evidence import UNSEEN, Branch, Graph, StepSeen
from ddplint.record.simulate.guess import Guess
from ddplint.record.simulate.rank import Simulation

MOST = 4
"""Lines whose other arm is tried."""
STRUCTURE = ("gradients", "outputs", "terms", "uses", "loss", "steps", "ranks", "buffers")
Answers = dict[tuple[str, int], bool]


@dataclasses.dataclass
class Explored:
    messages: list[tuple[str, Any]]
    unknown: dict[str, str] = dataclasses.field(default_factory=dict)
    """Aspect -> why nothing is known of it."""
    partly: dict[str, str] = dataclasses.field(default_factory=dict)
    """Aspect -> why not all is known of it: what was found is certain, a clean result is not."""
    split: bool = False
    """Whether it is open what DDP would do."""
    sequence: list = dataclasses.field(default_factory=list)
    unreduced: list[int] = dataclasses.field(default_factory=list)
    read: bool = False
    drew: bool = False


def explore(simulate: Callable[[Answers, int], Simulation]) -> Explored:
    """Simulate one rank, with other answers where it matters: ``simulate(answers, draw)``."""
    base = simulate({}, 0)
    guesses = dict(base.world.guesses.made)
    tried: list[Simulation] = []
    todo = [({key: False}, 0) for key, guess in guesses.items() if guess.explorable]
    if any(not guess.explorable for guess in guesses.values()):
        todo = [({}, 1), *todo]
    count = 0
    while todo and count < MOST and not base.stuck:
        other = simulate(*todo.pop(0))
        count += 1
        if _worth(other) > _worth(base):
            base, other = other, base
        if _worth(other) == 0 and _worth(base) > 0:
            continue                        # an arm that raises is no training
        tried.append(other)
        new = {k: g for k, g in other.world.guesses.made.items() if k not in guesses}
        guesses |= new
        todo += [({k: False}, 0) for k, g in new.items() if g.explorable]
    found = Explored(base.messages, sequence=base.sequence, unreduced=base.unreduced,
                     read=base.world.read, drew=base.world.drew)
    _judge(found, base, tried, guesses, {key for answers, _ in todo for key in answers})
    return found


def _worth(simulation: Simulation) -> int:
    """2: it came to its end; 1: DDP or the backward refused; 0: the user's own code raised."""
    failure = next((body for kind, body in simulation.messages if kind == "failure"), None)
    if failure is None:
        return 2
    return int(failure.phase == "backward" or failure.message.startswith("Expected to"))


def _judge(found: Explored, base: Simulation, tried: list[Simulation], guesses: dict, left: set) -> None:
    if base.stuck:
        found.unknown = dict.fromkeys(STRUCTURE, _why(list(guesses.values()) or [Guess(None, base.stuck, weights=True)]))
        found.messages = [m for m in found.messages if m[0] != "failure"]
        return
    differing = [other for other in tried if _merge(found.messages, other.messages)]
    _spread_unseen(found.messages)
    blind = [guess for key, guess in guesses.items() if not guess.explorable or key in left]
    keys = {key for other in differing for key in other.world.guesses.answers or other.world.guesses.made}
    found.split = bool(blind) or any(_end(other) != _end(base) for other in tried)
    _merge_branches(found.messages, tried, set(guesses))
    unsure = [*blind, *(guesses[key] for key in keys if key in guesses)]
    if unsure:
        found.partly = dict.fromkeys(STRUCTURE, _why(list({guess.key: guess for guess in unsure}.values())))
    elif guesses:
        note = f"simulated: {_lines(list(guesses.values()))} asks for a number that is not known; either answer gives the same gradients"
        found.messages.append(("notes", [*dict(found.messages).get("notes", []), note]))


def _why(guesses: list[Guess]) -> str:
    names = list(dict.fromkeys(name for guess in guesses for name in guess.sources))
    weights = any(guess.weights for guess in guesses)
    remedy = f"run.real: [{', '.join(names)}] gives it real numbers" if names and not weights \
        else "it depends on the model's weights, which a simulation does not have: run.engine=local decides it"
    return f"{_lines(guesses)} needs a number that a simulation does not know; {remedy}"


def _lines(guesses: list[Guess]) -> str:
    shown = [f"{g.place.file}:{g.place.line} ({g.place.text})" if g.place else g.what for g in guesses[:3]]
    return ", ".join(shown) + (f" and {len(guesses) - 3} more" if len(guesses) > 3 else "")


def _merge(messages: list, others: list) -> bool:
    """Set to UNSEEN what the two runs disagree on; whether there is anything."""
    steps, other_steps = _last_steps(messages), _last_steps(others)
    graphs, other_graphs = _graphs(messages), _graphs(others)
    differ = steps.keys() != other_steps.keys() or _events(messages) != _events(others)
    for number in steps.keys() & other_steps.keys():
        mine, theirs = steps[number], other_steps[number]
        if mine.use != theirs.use:
            differ = True
            if len(mine.use) == len(theirs.use):
                mine.use = "".join(a if a == b else UNSEEN for a, b in zip(mine.use, theirs.use, strict=True))
        differ = differ or _essence(graphs, mine) != _essence(other_graphs, theirs) or mine.fired != theirs.fired
    return differ


def _spread_unseen(messages: list) -> None:
    """A parameter that is open in one step is open in all: in another arm the later steps may never come."""
    steps = _last_steps(messages).values()
    unseen = {i for step in steps for i, state in enumerate(step.use) if state == UNSEEN}
    for step in steps if unseen else ():
        step.use = "".join(UNSEEN if i in unseen else state for i, state in enumerate(step.use))


def _end(simulation: Simulation) -> Any:
    """How the run ended, without the names of parameters."""
    return [(f.kind, f.phase, f.step, f.type, f.message[:40]) for kind, f in simulation.messages if kind == "failure"]


def _merge_branches(messages: list, tried: list[Simulation], guessed: set[tuple[str, int]]) -> None:
    """Arms that hang on a guess are not told: whether they are taken, nobody knows."""
    taken = {_arm(b) for other in tried for kind, arms in other.messages if kind == "branches" for b in arms if b.taken}
    for i, (kind, arms) in enumerate(messages):
        if kind == "branches" and guessed:
            messages[i] = (kind, [b for b in arms if (b.place.file, b.place.line) not in guessed
                                  and (b.taken or _arm(b) not in taken)])


def _arm(branch: Branch) -> tuple:
    return branch.place.file, branch.place.line, branch.arm, branch.module


def _last_steps(messages: list) -> dict[int, StepSeen]:
    return {body.step: body for kind, body in messages if kind == "step"}


def _graphs(messages: list) -> list[Graph]:
    return [body for kind, body in messages if kind == "graph"]


def _essence(graphs: list[Graph], step: StepSeen) -> Any:
    """What rules look at, without shapes (an empty selection has another)."""
    if step.graph is None or step.graph >= len(graphs):
        return None
    graph = graphs[step.graph]
    outputs = [(o.path, o.differentiable, o.visible, o.behind, o.in_total, o.terms) for o in graph.outputs]
    return outputs, [(t.name, t.differentiable, t.reach, t.in_total) for t in graph.terms], graph.total, graph.uses, set(graph.calls)


def _events(messages: list) -> list[tuple[int, str, str]]:
    return [(body.step, body.kind, body.detail) for kind, body in messages if kind == "event"]
