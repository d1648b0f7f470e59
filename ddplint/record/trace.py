"""The data-flow tracer: what became of each suspect parameter's values, operation by operation.

A ``TorchFunctionMode`` sees every call of torch's API. Each tensor that such a call returns gets a ``Value``, tied to
the tensor itself, so that nothing is kept alive but the history. Two bitsets travel along: ``live``, the suspects that
a gradient would reach from here, and ``data``, those whose numbers have gone into it in whatever way. Where a live
input gives a result without a graph, there is a ``Cut``; ``cuts`` is the bitset of those in a value's history.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from ddplint.record.calls import (
    COPYING,
    CREATING,
    DETACHING,
    FREEZING,
    LEAVES_TORCH,
    NO_DATA,
    OVERWRITING,
    name_of,
    numbers_in,
    storage_of,
    targets,
    tensors_in,
    written,
)
from ddplint.record.history import Cut, Op, Saved, Site, Value, Write, here, outermost

ANY = "*"
"""Among the suspects: stands for every parameter that is not one by name."""
_count = itertools.count()


class Tracer(TorchFunctionMode):
    """Active between ``start(phase)`` and ``pause()``; entered once around the whole solo run."""

    def __init__(self, suspects: dict[str, int], sources: Callable[[torch.Tensor], str | None],
                 depth: Callable[[], int]):
        super().__init__()
        self.suspects, self._source_name, self._depth = suspects, sources, depth
        self.phase = ""
        self.ops: list[Op] = []
        self.cuts: list[Cut] = []
        self.births: list[Op] = []
        self.left: list[Op] = []
        """Calls that gave plain numbers."""
        self.writes: list[Write] = []
        self.saved: list[Saved] = []
        self.keep_saved = False
        """Whether to note what each operation may keep for backward."""
        self.read = 0
        self.read_by: dict[str, Op] = {}
        self.off: list[tuple[Site | None, bool]] = []
        """Who switched gradients off (and whether a checkpoint did), outermost first."""
        self.frozen: dict[int, Site | None] = {}
        """id of a tensor whose requires_grad was switched off -> the user's outermost line, which names what is frozen."""
        self.grad_mode_site: Callable[[], Site | None] = here
        self.on_backward: Callable[[list], None] = lambda roots: None
        self.on_write: Callable[[torch.Tensor], None] | None = None
        """Called with each tensor that is written to, parameters included."""
        self.clock = 0
        self.watchers: list[Callable[[Op, list, list], None]] = []
        self._storages: dict[int, tuple[Any, Value]] = {}
        self._sources: set[int] = set()
        self._alive: list[Value] = []
        self._mark = f"_ddplint_value_{next(_count)}"

    # ------------------------------------------------------------------ phases

    def start(self, phase: str) -> None:
        self.phase = phase

    def pause(self) -> str:
        """Stop tracing; gives the phase to ``start`` again with."""
        phase, self.phase = self.phase, ""
        return phase

    def forget(self) -> None:
        """Start a step afresh; what the parameters are stays known."""
        for store in (self.ops, self.cuts, self.births, self.left, self.writes, self.saved, self.watchers, self.read_by,
                      self._storages, self._sources, self._alive):
            store.clear()
        self.read = 0

    def mark(self, subject: str, tensor: torch.Tensor) -> Value:
        """Make an output or a term a suspect of its own from here on."""
        bit = 1 << self.suspects.setdefault(subject, len(self.suspects))
        value = tensor.__dict__[self._mark] = self.value_of(tensor)
        value.data |= bit
        value.live |= bit if tensor.requires_grad else 0
        return value

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    # ------------------------------------------------------------------ the mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = name_of(func)
        if name == "_set_grad_enabled":
            return self._switch(func, args)
        if not self.phase or name in NO_DATA:
            result = func(*args, **kwargs)
            if self.phase and name in FREEZING:
                self._note_freezing(args[0])
            return result
        return self._call(name, func, args, kwargs)

    def _switch(self, func, args):
        """Keep the site that last switched gradients off while they were on."""
        before, wanted = torch.is_grad_enabled(), bool(args[0])
        result = func(*args)
        if before and not wanted:
            self.off.append((self.grad_mode_site(), False))
        elif not before and wanted and self.off:
            self.off.pop()
        return result

    def _note_freezing(self, tensor: torch.Tensor) -> None:
        self.frozen.pop(id(tensor), None)
        if not tensor.requires_grad:
            self.frozen[id(tensor)] = outermost(self._depth())

    def _call(self, name: str, func, args, kwargs):
        inputs = list(tensors_in((args[1:] if name in CREATING else args, kwargs)))
        if name == "backward":
            self.on_backward(list(tensors_in(args[:1])))
            return self.quietly(func, args, kwargs)
        before = [self.value_of(tensor) for tensor in inputs]
        result = func(*args, **kwargs)
        for tensor in targets(name, args, kwargs) if self.on_write is not None else ():
            self.on_write(tensor)
        target = written(name, args, kwargs)
        if target is None and name not in LEAVES_TORCH and result is not None and inputs and result is inputs[0]:
            return result
        results = [target] if target is not None else list(tensors_in(result))
        if target is not None and self.phase != "build" and isinstance(target, torch.nn.Parameter) and target.is_leaf:
            return result           # an update of a parameter (a moving average, an optimizer's): no data flow
        if results or name in LEAVES_TORCH:
            if target is not None and name in OVERWRITING:
                before = before[1:]
            self.note(name, before, inputs, results, tuple(numbers_in((args, kwargs))), target, name in COPYING)
        return result

    @contextlib.contextmanager
    def gradients_off(self, site: Site | None, checkpoint: bool) -> Iterator[None]:
        """An autograd.Function runs its forward without gradients, which the mode is not told of."""
        depth = len(self.off)
        self.off.append((site, checkpoint))
        try:
            yield
        finally:
            del self.off[depth:]

    def quietly(self, func, args, kwargs):
        phase = self.pause()
        try:
            return func(*args, **kwargs)
        finally:
            self.phase = phase

    # ------------------------------------------------------------------ one call

    def note(self, name: str, before: list[Value], inputs: list, results: list, literals: tuple = (), target=None,
             cut: bool = False) -> Op:
        """Record a call: ``inputs`` and ``results`` are tensors, ``before`` the inputs' values as they were.

        ``cut`` says that no gradient goes through, although the results need one (a new nn.Parameter).
        """
        site = here()
        op = Op(name, len(self.ops), site, self._depth(), self.phase, before, [], literals, self.tick())
        self.ops.append(op)
        self._note_reads(op)
        live, data, cuts = _union(before)
        if name in LEAVES_TORCH:
            self.left.append(op)
            self._cut(op, live, floating=False, left=True)
            return op
        for tensor in results:
            grad = tensor.requires_grad
            value = Value(op, live if grad and not cut else 0, data, cuts, grad, "", tuple(tensor.shape))
            if live and (cut or not grad):
                value.cuts |= self._cut(op, live, floating=tensor.is_floating_point() or tensor.is_complex())
            op.results.append(value)
            tensor.__dict__[self._mark] = value
        if target is not None:
            self._note_write(op, target)
        elif self.keep_saved and any(value.grad for value in op.results):
            self._note_saved(op, [*zip(inputs, before, strict=True), *zip(results, op.results, strict=True)])
        for watch in self.watchers:
            watch(op, inputs, results)
        return op

    def _cut(self, op: Op, bits: int, floating: bool, left: bool = False) -> int:
        if not bits:
            return 0
        blame, checkpoint = self.off[-1] if self.off and not torch.is_grad_enabled() else (None, False)
        for index in range(len(self.cuts) - 1, max(len(self.cuts) - 4, -1), -1):
            same = self.cuts[index]
            if same.site == op.site and same.floating == floating and same.bits == bits and same.blame == blame:
                return 1 << index
        self.cuts.append(Cut(op.name, op.site, bits, floating, op.phase, blame, checkpoint, left))
        return 1 << len(self.cuts) - 1

    def _note_reads(self, op: Op) -> None:
        if op.name in DETACHING:
            return                  # what reads the result is what counts
        for value in op.inputs:
            if value.name:
                self.read |= value.data
                self.read_by.setdefault(value.name, op)

    def _note_write(self, op: Op, target: torch.Tensor) -> None:
        key = storage_of(target)
        if key is None:
            return
        self._storages[key] = (StorageWeakRef(target.untyped_storage()), op.results[0])
        if not torch.is_inference_mode_enabled() and not target.is_inference():
            self.writes.append(Write(op, key, target._version))

    def _note_saved(self, op: Op, pairs: list[tuple[torch.Tensor, Value]]) -> None:
        for tensor, value in pairs:
            storage = storage_of(tensor)
            if storage is not None and not tensor.is_inference():
                name = value.name or next((v.name for v in (value.op.inputs if value.op else ()) if v.name), "")
                self.saved.append(Saved(op, storage, tensor._version, tuple(tensor.shape), name))

    # ------------------------------------------------------------------ values

    def value_of(self, tensor: torch.Tensor) -> Value:
        value = tensor.__dict__.get(self._mark)
        if value is None or not self._knows(value):
            value = self._source(tensor)
        elif value.op is None:
            value.grad = tensor.requires_grad
        if self._storages and (written := self._written_later(tensor, value)) is not None:
            live = value.live | (written.live if tensor.requires_grad else 0)
            return Value(written.op, live, value.data | written.data, value.cuts | written.cuts,
                         tensor.requires_grad, value.name, value.shape, value.births | written.births, written.state)
        return value

    def _knows(self, value: Value) -> bool:
        """Whether the value belongs to this step; what earlier steps left behind is a source like any other."""
        op = value.op
        if op is None:
            return id(value) in self._sources
        return op.index < len(self.ops) and self.ops[op.index] is op

    def _source(self, tensor: torch.Tensor) -> Value:
        name = self._source_name(tensor) or ""
        position = self.suspects.get(name, self.suspects.get(ANY) if isinstance(tensor, torch.nn.Parameter) else None)
        bit = 0 if position is None else 1 << position
        value = Value(None, bit, bit, 0, tensor.requires_grad, name, tuple(tensor.shape))
        tensor.__dict__[self._mark] = value
        self._sources.add(id(value))
        self._alive.append(value)
        return value

    def _written_later(self, tensor: torch.Tensor, value: Value) -> Value | None:
        entry = self._storages.get(storage_of(tensor))
        if entry is None or entry[0].expired():
            return None
        written = entry[1]
        return written if value.op is None or written.op.index > value.op.index else None


def _union(values: list[Value]) -> tuple[int, int, int]:
    live = data = cuts = 0
    for value in values:
        if value.grad:
            live |= value.live
        data |= value.data
        cuts |= value.cuts
    return live, data, cuts
