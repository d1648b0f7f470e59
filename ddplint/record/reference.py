"""The gradient of the intended global batch, on one process, beside what the ranks hold after the reduction.

A job of its own (run.reference): every rank runs the first step under DDP and stops before the optimizer moves anything;
rank 0 then computes the same objective on the batches of all ranks and micro-batches joined into one, in a group of one.
The model is in eval mode, so that neither dropout nor BatchNorm's statistics come between the two.
"""

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from ddplint.evidence import Reference
from ddplint.record.program import Program
from ddplint.record.source import set_folder
from ddplint.record.wrap import wrap
from ddplint.spec import Spec


class CannotJoin(Exception):
    """The ranks' batches do not make one batch; the message says why."""


def run(spec: Spec, scenario: str, rank: int, world_size: int, device: torch.device, send: Callable[[str, Any], None]) -> bool:
    """Send ``reference`` (a Reference, from rank 0), or ``no-reference`` with the reason."""
    set_folder(spec.folder)
    program = Program(spec, scenario, rank, world_size, device)
    program.resolve()
    model = program.build()
    program.prepare(0)
    model.eval()
    alone = dist.new_group([0])
    send("phase", ("batch", 0))
    own = [program.batch(item) for item in range(program.accumulate)]
    everyone: list | None = [None] * world_size if rank == 0 else None
    dist.gather_object(own, everyone)
    twin = copy.deepcopy(model) if rank == 0 else None
    reduced = _gradients(program, wrap(model, {**spec.ddp, "find_unused_parameters": True, "static_graph": False}, device), own, send)
    if rank == 0:
        try:
            whole = joined([batch for batches in everyone for batch in batches])
            with _alone(alone):
                reference = _gradients(program, DistributedDataParallel(twin, find_unused_parameters=True), [whole], send,
                                       declared=spec.loss.terms is not None)
            send("reference", compare(reduced, reference, program.accumulate, declared=spec.loss.terms is not None))
        except CannotJoin as reason:
            send("no-reference", str(reason))
    dist.barrier()
    return True


@contextlib.contextmanager
def _alone(group: Any) -> Iterator[None]:
    """The default group is rank 0's own: what the user's code asks of the world is answered for one process."""
    world = dist.group.WORLD
    distributed_c10d._update_default_pg(group)
    try:
        yield
    finally:
        distributed_c10d._update_default_pg(world)


# ---------------------------------------------------------------------- one step


def _gradients(program: Program, wrapper: torch.nn.Module, batches: list, send: Callable, declared: bool = False) -> dict[str, Any]:
    """Parameter -> its gradient when the optimizer would step. ``declared``: the spec's loss, whatever its ``step`` does."""
    send("phase", ("forward", 0))
    program.model = model = wrapper.module
    model.zero_grad(set_to_none=True)
    if program.custom_step and not declared:
        return _of_step(program, wrapper, batches[0])
    for part, batch in enumerate(batches):
        with contextlib.nullcontext() if part == len(batches) - 1 else wrapper.no_sync():
            (program.objective(wrapper, batch) / len(batches)).backward()
    return _held(model)


def _held(model: torch.nn.Module) -> dict[str, Any]:
    return {name: p.grad.detach().clone() for name, p in model.named_parameters() if p.grad is not None}


class _Stepped(BaseException):
    """Raised in place of the optimizer's first step."""


def _of_step(program: Program, wrapper: torch.nn.Module, batch: Any) -> dict[str, Any]:
    """The user's own step, until its optimizer steps."""
    found: dict[str, Any] = {}

    def before(*_: Any) -> None:
        found.update(_held(wrapper.module))
        raise _Stepped
    optimizer = program.make_optimizer(wrapper.module)
    if isinstance(optimizer, torch.optim.Optimizer):
        optimizer.register_step_pre_hook(before)
    with contextlib.suppress(_Stepped):
        program.step(wrapper, batch, optimizer)
    return found or _held(wrapper.module)


# ---------------------------------------------------------------------- one batch of many


def joined(batches: list) -> Any:
    """The batches as one, along the first dimension of their tensors. Raises CannotJoin where they do not fit."""
    sizes = Counter(leaf.shape[0] for leaf in _tensors(batches[0]) if leaf.ndim)
    return _join(batches, sizes.most_common(1)[0][0] if sizes else 0, "batch", top=True)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif hasattr(value, "values"):
        yield from (leaf for item in value.values() for leaf in _tensors(item))
    elif isinstance(value, list | tuple):
        yield from (leaf for item in value for leaf in _tensors(item))


def _join(parts: list, size: int, where: str, top: bool = False) -> Any:
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return _join_tensors(parts, size, where)
    if hasattr(first, "keys"):
        return {key: _join([part[key] for part in parts], size, f"{where}.{key}") for key in first.keys()}  # noqa: SIM118
    if isinstance(first, tuple) or (isinstance(first, list) and top):       # a loader's [images, labels]
        items = [_join(list(column), size, f"{where}.{i}") for i, column in enumerate(zip(*parts, strict=True))]
        return type(first)(items) if type(first) in (list, tuple) else type(first)(*items)
    if isinstance(first, list):                                             # a list of samples
        return [sample for part in parts for sample in part]
    if all(part == first for part in parts):
        return first
    raise CannotJoin(f"{where} is a {type(first).__name__} that differs between the ranks: there is no one global batch")


def _join_tensors(parts: list[torch.Tensor], size: int, where: str) -> torch.Tensor:
    first = parts[0]
    same = all(part.shape == first.shape and torch.equal(part, first) for part in parts)
    if same and (first.ndim == 0 or first.shape[0] != size):
        return first                                                        # class weights and the like
    if first.ndim == 0 or any(part.shape[1:] != first.shape[1:] for part in parts):
        shapes = " and ".join(dict.fromkeys(str(list(part.shape)) for part in parts))
        raise CannotJoin(f"{where} has shapes {shapes}, which do not make one global batch")
    return torch.cat([part.to(first.device) for part in parts])


# ---------------------------------------------------------------------- against each other


def compare(reduced: dict[str, Any], reference: dict[str, Any], accumulate: int, declared: bool = True) -> Reference:
    """Per parameter that both have: the factor by which the reduced gradient is longer, and what is left beside it."""
    found = Reference(accumulate=accumulate, declared=declared)
    for name, alone in reference.items():
        if name in reduced:
            g, r = (t.to_dense().double().reshape(-1) for t in (reduced[name], alone))
            square = float(r @ r)
            factor = float(g @ r) / square if square else 0.0
            found.names.append(name)
            found.sizes.append(square ** 0.5)
            found.factors.append(factor)
            found.rests.append(float((g - factor * r).norm()))
    return found
