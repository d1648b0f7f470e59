"""Operations whose result has a shape that depends on numbers: with fake tensors they are answered here.

``x[mask]`` with a real mask is an index by its positions. With a fake mask it is a guess: all of it, or nothing.
"""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
READS = {aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default}
_INDEX = {aten.index.Tensor, aten._unsafe_index.Tensor}
_PUT = {aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default, aten._unsafe_index_put.default}
_MASKS = (torch.bool, torch.uint8)


def has_mask(func: Any, args: tuple) -> bool:
    """Whether a real index by a mask looks at values."""
    return func in _INDEX and any(t is not None and t.dtype in _MASKS for t in args[1])


def _positions(world: Any, mask: torch.Tensor) -> list[torch.Tensor]:
    """The mask's true positions, an index tensor per dimension."""
    from torch._subclasses.fake_tensor import FakeTensor
    if not isinstance(mask, FakeTensor):
        world.looked()
        return list(torch.where(mask.detach() != 0))
    count = mask.numel() if world.guess("mask", [mask]) else 0
    return [world.empty((count,), torch.int64) for _ in range(mask.dim())]


def _indices(world: Any, given: list) -> list:
    found = []
    for index in given:
        found += _positions(world, index) if index is not None and index.dtype in _MASKS else [index]
    return found


def _index(world: Any, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
    return _faked(world, func, (args[0], _indices(world, args[1])))


def _put(world: Any, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
    """The result is like what is written into."""
    from torch._subclasses.fake_tensor import FakeTensor
    if not func._schema.is_mutable:
        return world.like(args[0])
    if not isinstance(args[0], FakeTensor):
        world.spoil(args[0])
    return args[0]


def _nonzero(world: Any, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
    mask = args[0]
    count = mask.numel() if world.guess("nonzero", [mask]) else 0
    return world.empty((count, mask.dim()), torch.int64)


def _masked_select(world: Any, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
    shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
    positions = _positions(world, args[1].expand(shape))
    return _faked(world, aten.index.Tensor, (args[0].expand(shape), positions))


def _scalar(world: Any, func: Any, args: tuple, kwargs: dict) -> Any:
    """Torch's own code asks for a number."""
    tensor = args[0]
    if tensor.dtype is torch.bool:
        return world.guess("bool", [tensor])
    world.guess("number", [tensor], explorable=False)
    return 1.0 if tensor.is_floating_point() else 1


def _equal(world: Any, func: Any, args: tuple, kwargs: dict) -> bool:
    return world.guess("equal", args[:2])


def _unique(world: Any, func: Any, args: tuple, kwargs: dict) -> tuple:
    """As if all were different."""
    tensor = args[0]
    world.guess("unique", [tensor], explorable=False)
    count = tensor.shape[args[1]] if func is aten.unique_dim.default else tensor.numel()
    shape = list(tensor.shape) if func is aten.unique_dim.default else [count]
    return (world.empty(tuple(shape), tensor.dtype), world.empty(tuple(tensor.shape), torch.int64),
            world.empty((count,), torch.int64))


def _finite(value: bool) -> Callable:
    """Simulated numbers are finite by assumption; whether they are is no question for a simulation."""
    def answer(world: Any, func: Any, args: tuple, kwargs: dict) -> torch.Tensor:
        return torch.full((), value).expand(args[0].shape)
    return answer


def _pack(world: Any, func: Any, args: tuple, kwargs: dict) -> tuple:
    """pack_padded_sequence with real lengths."""
    data, lengths = args[:2]
    if world.is_fake(lengths):
        return _faked(world, func, args)
    world.looked()
    counts = lengths.tolist()
    sizes = torch.tensor([sum(n > step for n in counts) for step in range(max(counts))])
    rest = data.shape[2:]
    return world.empty((int(sum(counts)), *rest), data.dtype), sizes


def _faked(world: Any, func: Any, args: tuple) -> Any:
    return world.fake.dispatch(func, (), args, {})


TABLE: dict[Any, Callable] = {
    aten.nonzero.default: _nonzero,
    aten.masked_select.default: _masked_select,
    aten._local_scalar_dense.default: _scalar,
    aten.equal.default: _equal,
    aten._unique2.default: _unique,
    aten.unique_dim.default: _unique,
    aten.isinf.default: _finite(False),
    aten.isnan.default: _finite(False),
    aten._pack_padded_sequence.default: _pack,
    **dict.fromkeys(_INDEX, _index),
    **dict.fromkeys(_PUT, _put),
}
