"""What a call of torch's API reads and writes: its name, its tensors, its numbers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

LEAVES_TORCH = {"item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__index__", "__complex__", "__array__"}
OVERWRITING = {"zero_", "fill_", "copy_", "normal_", "uniform_", "constant_", "zeros_", "ones_", "set_"}
DETACHING = {"detach", ".data"}
CREATING = {"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "randint_like", "full_like",
            "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"}
"""Calls that take nothing but shape and kind from a tensor."""
COPYING = {"tensor", "new_tensor"}
"""Calls that take the numbers of tensors and never their graph, even where the copy requires a gradient."""
NO_DATA = {"requires_grad_", "retain_grad", "register_hook", "share_memory_",
           "size", "stride", "dim", "numel", "is_floating_point", "is_complex",
           ".grad_fn", ".grad", ".grad=", ".requires_grad", ".requires_grad=", ".shape", "._base", ".is_leaf"}
"""Calls that read no numbers (an attribute's name starts with a dot)."""
FREEZING = {"requires_grad_", ".requires_grad="}


def name_of(function: Any) -> str:
    name = getattr(function, "__name__", "") or type(function).__name__
    if name in ("__get__", "__set__"):
        name = "." + getattr(getattr(function, "__self__", None), "__name__", name) + ("=" if name == "__set__" else "")
    return name


def written(name: str, args: tuple, kwargs: dict) -> torch.Tensor | None:
    """The tensor that a call writes into, if it does."""
    if isinstance(kwargs.get("out"), torch.Tensor):
        return kwargs["out"]
    in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) \
        or (name.startswith("__i") and name not in ("__index__", "__invert__", "__int__"))
    if not in_place:
        return None
    target = args[0] if args else kwargs.get("tensor", kwargs.get("input"))
    return target if isinstance(target, torch.Tensor) else None


def targets(name: str, args: tuple, kwargs: dict) -> list[torch.Tensor]:
    """All that a call gives new numbers: also lists of tensors, and a tensor whose ``data`` is another's from here on."""
    if name == ".data=" or (name.startswith("_foreach_") and name.endswith("_")):
        return list(tensors_in(args[:1]))
    target = written(name, args, kwargs)
    return [] if target is None else [target]


def storage_of(tensor: torch.Tensor) -> int | None:
    """The identity of a tensor's memory; None for sparse tensors and others without one."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


def tensors_in(value: Any, level: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists, mappings and dataclasses, five levels deep."""
    if isinstance(value, torch.Tensor):
        yield value
    elif level < 5:
        for item in _items(value):
            yield from tensors_in(item, level + 1)


def numbers_in(value: Any, level: int = 0) -> Iterator[float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif level < 3:
        for item in _items(value):
            yield from numbers_in(item, level + 1)


def _items(value: Any) -> Iterable:
    if value is None or isinstance(value, str | int | float | torch.Tensor):
        return ()
    if isinstance(value, tuple | list):
        return value
    if isinstance(value, Mapping):
        return value.values()
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return getattr(value, "__dict__", {}).values()
    return ()
