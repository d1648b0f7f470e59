"""A graph that an earlier backward has freed: who leads a later one into it."""

from typing import Any

import torch
from torch import nn

from ddplint.evidence import Cause
from ddplint.record.causes.guards import place_of
from ddplint.record.history import Op, Value
from ddplint.record.replay import Replay

FREED = "a second time"
_saving: dict[type, list[str]] = {}
"""Kind of node -> the attributes that give what it saved."""


class Spent:
    """A watcher of the tracer: each operation that reads a tensor of an earlier step, or from before the last backward, with a freed graph."""

    def __init__(self, replay: Replay, model: nn.Module):
        self.replay, self.model = replay, model
        self.reads: list[tuple[int, Op, str]] = []
        """(the bit that its result carries, the operation, what it reads)"""
        self.roots = False
        """Whether backward was called on a loss whose own graph, made since, had been freed."""
        self._clean: dict[int, Any] = {}
        self._cleaned_at = -1

    def __call__(self, op: Op, inputs: list, results: list) -> None:
        if not any(value.grad for value in op.results):
            return
        for tensor, value in zip(inputs, op.inputs, strict=True):
            if tensor.grad_fn is not None and self._is_old(value) and self.is_freed(tensor):
                bit = self.replay.bits_for(f"spent:{len(self.reads)}")
                self.reads.append((bit, op, self._name_of(tensor)))
                for result in op.results:
                    result.live |= bit if result.grad else 0
                return

    def _is_old(self, value: Value) -> bool:
        return value.op is None or value.op.order < self.replay.last_backward

    def backward_begins(self, roots: list) -> None:
        self.roots = any(tensor.grad_fn is not None and self.is_freed(tensor) for tensor in roots)

    def is_freed(self, tensor: torch.Tensor) -> bool:
        """Whether a node of its graph has given up what it saved."""
        if self._cleaned_at != self.replay.last_backward:
            self._clean, self._cleaned_at = {}, self.replay.last_backward
        pending = [tensor.grad_fn]
        while pending:
            node = pending.pop()
            if node is None or id(node) in self._clean:
                continue
            if self.replay.tracer.quietly(_is_spent, (node,), {}):
                return True
            self._clean[id(node)] = node
            pending += [child for child, _ in node.next_functions]
        return False

    def _name_of(self, tensor: torch.Tensor) -> str:
        """The attribute or buffer of the model that holds it."""
        for prefix, module in self.model.named_modules():
            for name, value in (vars(module) | module._buffers).items():
                if any(item is tensor for item in (value if isinstance(value, tuple | list) else [value])):
                    return f"'{prefix}.{name}'" if prefix else f"'{name}'"
        return "what is read here"


def _is_spent(node: Any) -> bool:
    kind = type(node)
    if kind not in _saving:
        own = dir(node)
        _saving[kind] = [name for raw in own if raw.startswith("_raw_saved_") for name in (raw[4:], "saved_tensors") if name in own]
    for name in _saving[kind]:
        try:
            getattr(node, name)
        except RuntimeError as error:
            if FREED in str(error):
                return True
    return False


def why_spent(replay: Replay, sink: str) -> Cause | None:
    """``sink``: the keyword under which DDP puts a node of its own behind the outputs of this step's forward; empty where it does not."""
    spent: Spent = replay.spent
    part = replay.parts[-1] if replay.parts else replay
    again = next((part for part in replay.parts[1:] if not part.outputs), None)     # no wrapped forward since the last backward
    read = next(((op, what) for bit, op, what in spent.reads if part.total is not None and part.total.live & bit), None)
    if read is not None and part is not again:
        op, what = read
        return Cause("kept-graph", f"{what} is kept from before an earlier backward(), which has freed its graph", place_of(op.site), op.name)
    if (spent.roots or read is not None) and len(replay.parts) > 1:
        return Cause("second-backward", "an earlier backward() has freed the graph of this loss", place_of(replay.backward))
    if sink and again is not None:
        return Cause("second-backward", f"under {sink}=True all outputs of one wrapped forward hang on one node, and an earlier "
                     "backward() has freed all that lies behind it", place_of(again.backward))
    return None
