"""DDP's reducer, in Python: what it accepts and what it refuses, without buckets and without communication.

Written after torch's ``reducer.cpp`` (2.13). Its Python half, ``DistributedDataParallel`` itself, runs as it is. The
hooks sit where the genuine ones do, on the parameters' AccumulateGrad nodes as they were at the wrap.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd import Variable
from torch.nn.parallel import distributed

from ddplint.record.batches import ProgramError

UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
    "\nmaking sure all `forward` function outputs participate in calculating loss. "
    "\nParameter indices which did not receive grad for rank {rank}: {indices}")
TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
    "module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward passes. "
    "\nParameter at index {index} with name {name} has been marked as ready twice.")
CHANGED = ("Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, but "
           "then got used in the second iteration. this is not compatible with static_graph set to True.")

RefusedByDDP = type("RuntimeError", (ProgramError,), {"__doc__": "What the genuine reducer raises, told apart from a fault of ours."})


class Reducer:
    """``unfinished``: a reduction has begun and cannot end."""

    on_finished: Callable[[], None] = staticmethod(lambda: None)
    armed = True
    """False: it expects nothing and refuses nothing, to see the steps that its refusal cuts off."""

    def __init__(self, parameters: list[torch.Tensor], *rest: Any, **keywords: Any):
        self.find_unused = bool(rest[5]) if len(rest) > 5 else False
        names = rest[7] if len(rest) > 7 else {}
        self.names = [names.get(i, f"#{i}") for i in range(len(parameters))]
        self.static, self.iterations = False, 0
        self.expected = self.unfinished = self.marked_unused = False
        self.unused: list[int] = []
        self.ready: set[int] = set()
        self.triggered = [0] * len(parameters)
        self.left: list[int] = []
        with torch.enable_grad():
            self.accumulators = [p.expand_as(p).grad_fn.next_functions[0][0] for p in parameters]
        for i, node in enumerate(self.accumulators):
            node.register_hook(lambda *_, i=i: self._fired(i))

    def __getattr__(self, name: str) -> Callable:
        """Whatever else DDP tells its reducer (statistics, handles, mixed precision) changes no verdict."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    # ------------------------------------------------------------------ what DDP calls

    def prepare_for_forward(self) -> None:
        self.iterations += 1

    def _rebuild_buckets(self) -> bool:
        self._refuse_unfinished()
        return False

    def _set_static_graph(self) -> None:
        self.static = True

    def prepare_for_backward(self, outputs: list[torch.Tensor]) -> None:
        self._refuse_unfinished()
        self.expected, self.marked_unused = self.armed, False
        self.ready, self.left = set(), list(self.triggered)
        if self.find_unused and not self.static:
            reached = _nodes_below(outputs)
            self.unused = [i for i, node in enumerate(self.accumulators) if node not in reached]

    def _delay_all_reduce(self) -> None:
        """static_graph's first iteration ends: who fired then is who must fire ever after."""
        self.unused = [i for i, times in enumerate(self.triggered) if not times]
        self._finish()

    # ------------------------------------------------------------------ what the hooks do

    def _fired(self, i: int) -> None:
        if self.static and self.iterations == 1:
            self.triggered[i] += 1
            return
        if not self.expected:
            return
        if not self.marked_unused:
            self.marked_unused = True
            for other in self.unused:
                self._mark(other)
        if self.static:
            if self.left[i] <= 0:
                raise RefusedByDDP(CHANGED)
            self.left[i] -= 1
            if self.left[i]:
                return
        self._mark(i)

    def _mark(self, i: int) -> None:
        if i in self.ready:
            raise RefusedByDDP(TWICE.format(index=i, name=self.names[i]))
        self.unfinished = True
        self.ready.add(i)
        if len(self.ready) == len(self.accumulators):
            Variable._execution_engine.queue_callback(self._finish)

    def _finish(self) -> None:
        self.expected = self.unfinished = False
        self.on_finished()

    def _refuse_unfinished(self) -> None:
        if self.unfinished:
            missing = [i for i in range(len(self.accumulators)) if i not in self.ready]
            raise RefusedByDDP(UNFINISHED.format(rank=dist.get_rank(), indices=" ".join(map(str, missing))))


def _nodes_below(outputs: list[torch.Tensor]) -> set[Any]:
    """All graph nodes that the outputs lead to; a leaf's own is its AccumulateGrad."""
    with torch.enable_grad():
        stack = [o.grad_fn or o.expand_as(o).grad_fn.next_functions[0][0] for o in outputs if o.requires_grad]
    seen = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                stack.append(node)
    return seen


class _Quiet:
    def __init__(self, *_: Any):
        pass

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **kwargs: None


@contextlib.contextmanager
def installed(on_finished: Callable[[], None], armed: bool = True) -> Iterator[None]:
    """DDP is built and run without its C++ half; collectives of the user's return at once."""
    with contextlib.ExitStack() as undo:
        def put(owner: Any, name: str, value: Any) -> None:
            if hasattr(owner, name):
                undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, value)

        put(Reducer, "on_finished", staticmethod(on_finished))
        put(Reducer, "armed", armed)
        put(dist, "Reducer", Reducer)
        put(dist, "Logger", _Quiet)
        put(dist, "_compute_bucket_assignment_by_size", lambda tensors, limits, *_: ([list(range(len(tensors)))], limits))
        put(distributed, "_sync_module_states", lambda *a, **k: None)
        put(distributed, "_verify_param_shape_across_processes", lambda *a, **k: None)
        put(distributed.DistributedDataParallel, "_sync_buffers", lambda ddp: None)
        put(distributed.DistributedDataParallel, "join", lambda ddp, *a, **k: contextlib.nullcontext(ddp))
        for name in ("allreduce", "allreduce_coalesced", "broadcast", "reduce", "barrier", "send", "recv", "scatter"):
            put(dist.ProcessGroup, name, lambda group, *a, **k: _done())
        for name in ("allgather", "_allgather_base", "gather", "reduce_scatter", "_reduce_scatter_base", "alltoall", "alltoall_base"):
            put(dist.ProcessGroup, name, _handed_on)
        yield


def _done() -> Any:
    future: torch.futures.Future = torch.futures.Future()
    future.set_result([])
    return dist._create_work_from_future(future) if hasattr(dist, "_create_work_from_future") \
        else torch._C._distributed_c10d._create_work_from_future(future)


def _handed_on(group: Any, outputs: Any, inputs: Any, *rest: Any, **keywords: Any) -> Any:
    """As if every rank gave what this one gives."""
    for output, given in zip(_flat(outputs), _repeated(inputs), strict=False):
        if output.shape == given.shape:
            output.detach().copy_(given.detach())
    return _done()


def _flat(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [t for item in value for t in _flat(item)]


def _repeated(inputs: Any) -> Iterator[torch.Tensor]:
    given = _flat(inputs)
    while given:
        yield from given
