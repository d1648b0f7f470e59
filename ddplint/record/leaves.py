"""The tensor leaves of what a model returned, by path."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

MAX_DEPTH = 8


def leaves(value: Any, path: str = "", visible: bool = True, depth: int = 0, seen: set | None = None) -> Iterator[tuple]:
    """(path, tensor, visible) for every floating or complex tensor in ``value``; a bare tensor's path is ``output``.

    ``visible`` tells whether DDP finds the tensor: it looks into tuples, lists, mappings and dataclasses
    (torch.nn.parallel.distributed._find_tensors), not into plain objects.
    """
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() or value.is_complex():
            yield path or "output", value, visible
        return
    if depth > MAX_DEPTH or id(value) in seen or _is_plain(value):
        return
    seen.add(id(value))
    children, inside = _children(value)
    for key, child in children:
        yield from leaves(child, f"{path}.{key}" if path else str(key), visible and inside, depth + 1, seen)


def _children(value: Any) -> tuple[list, bool]:
    """The children by key, and whether DDP would look at them."""
    if isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return [(key, value[key]) for key in list(value.keys())], isinstance(value, dict)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True)), True
    if isinstance(value, list | tuple):
        return list(enumerate(value)), True
    if dataclasses.is_dataclass(value):
        return [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)], True
    return list(getattr(value, "__dict__", {}).items()), False


def _is_plain(value: Any) -> bool:
    """Things that hold no outputs, or that looking into would disturb (modules, generators, types, functions)."""
    return (value is None or isinstance(value, str | bytes | int | float | complex | bool | type | torch.nn.Module)
            or callable(value) or hasattr(value, "__next__"))
