"""One walk over the autograd graph of a step: which terms, which total and which outputs depend on which parameters.

The walk goes over (node, output number), never over nodes alone: DDP wraps all outputs in one ``_DDPSink`` node,
through which a walk over nodes reaches every parameter. It keeps a stack of its own (recursion dies at 500 layers)
and carries one bitset of roots, so that one pass serves all of them; about 1-4 microseconds a node.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

Key = tuple[Any, int]
OPAQUE = {"CheckpointFunctionBackward": "a reentrant checkpoint", "CompiledFunctionBackward": "a compiled region"}


def key_of(tensor: Any) -> Key | None:
    """Where a tensor hangs in the graph: (grad_fn, output number); a leaf is (itself, -1); None without a graph."""
    if not isinstance(tensor, torch.Tensor) or not tensor.requires_grad:
        return None
    return (tensor, -1) if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


@dataclass
class Walk:
    """``roots[i]`` is bit i; ``edges`` and ``leaves`` map to the bitset of the roots that reach them."""

    edges: dict[tuple[int, int], int] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)
    tensors: dict[int, torch.Tensor] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    alive: list = field(default_factory=list)
    """Keeps every node's Python object, so that ids stay those of the same node while the walk is looked at."""

    def reached_by(self, key: Key | None) -> int:
        if key is None:
            return 0
        node, number = key
        return self.leaves.get(id(node), 0) if number == -1 else self.edges.get((id(node), number), 0)


def walk(roots: Iterable[Key | None]) -> Walk:
    """Carry each root's bit down to every node and leaf that it depends on."""
    result, bits_at, start = Walk(), {}, []
    for i, key in enumerate(roots):
        if key is None:
            continue
        node, number = key
        if number == -1:
            result.leaves[id(node)] = result.leaves.get(id(node), 0) | 1 << i
            result.tensors[id(node)] = node
            continue
        bits_at[id(node), number] = bits_at.get((id(node), number), 0) | 1 << i
        start.append(node)
    order = _topological(start)
    incoming: dict[int, list[tuple[int, int]]] = {}
    for where in bits_at:
        incoming.setdefault(where[0], []).append(where)
    for node in order:
        _pass_on(node, bits_at, incoming, result)
    result.edges, result.alive = bits_at, order
    return result


def _topological(start: list) -> list:
    """All nodes below ``start``, each before the nodes it leads to."""
    order, state, stack = [], {}, list(start)
    while stack:
        node = stack[-1]
        phase = state.get(node)
        if phase is None:
            state[node] = 1
            stack.extend(n for n, _ in node.next_functions if n is not None and n not in state)
        else:
            stack.pop()
            if phase == 1:
                state[node] = 2
                order.append(node)
    order.reverse()
    return order


def _pass_on(node: Any, bits_at: dict, incoming: dict, result: Walk) -> None:
    here = incoming.get(id(node), ())
    variable = getattr(node, "variable", None)
    everything = 0
    for where in here:
        everything |= bits_at[where]
    if variable is not None and not node.next_functions:            # AccumulateGrad
        result.leaves[id(variable)] = result.leaves.get(id(variable), 0) | everything
        result.tensors[id(variable)] = variable
        return
    name = type(node).__name__
    if name in OPAQUE:
        result.opaque.add(OPAQUE[name])
    sink = name == "_DDPSinkBackward"                               # output i depends on input i alone
    for position, (child, number) in enumerate(node.next_functions):
        if child is None:
            continue
        given = bits_at.get((id(node), position), 0) if sink else everything
        where = (id(child), number)
        if where not in bits_at:
            bits_at[where] = 0
            incoming.setdefault(id(child), []).append(where)
        bits_at[where] |= given
