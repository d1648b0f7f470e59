"""What a simulated rank is fed: fake floating tensors, and how to tell that two ranks are fed the same."""

import copy
import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ddplint.record.batches import Feed
from ddplint.record.targets import is_node

MAX_DEPTH = 8


def mapped(value: Any, change: Callable[[str, torch.Tensor], torch.Tensor], path: str = "batch", depth: int = 0) -> Any:
    """The same structure with each tensor replaced by ``change(path, tensor)``; objects are copied, not changed."""
    if isinstance(value, torch.Tensor):
        return change(path, value)
    if depth > MAX_DEPTH or value is None or isinstance(value, str | bytes | int | float | bool | torch.nn.Module | type):
        return value

    def inner(key: Any, item: Any) -> Any:
        return mapped(item, change, f"{path}.{key}", depth + 1)
    if isinstance(value, dict):
        changed = {key: inner(key, item) for key, item in value.items()}
        return changed if type(value) is dict else _refilled(value, changed)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(inner(*pair) for pair in zip(value._fields, value, strict=True)))
    if type(value) in (list, tuple):
        return type(value)(inner(i, item) for i, item in enumerate(value))
    if isinstance(getattr(value, "data", None), dict) and hasattr(value, "keys"):        # a UserDict
        return _with_attributes(value, {"data": {key: inner(key, item) for key, item in value.data.items()}})
    if hasattr(value, "__dict__") and not callable(value):
        return _with_attributes(value, {key: inner(key, item) for key, item in vars(value).items()})
    return value


def _refilled(value: dict, changed: dict) -> dict:
    twin = copy.copy(value)
    for key, item in changed.items():
        twin[key] = item
    return twin


def _with_attributes(value: Any, changed: dict[str, Any]) -> Any:
    if all(changed[key] is vars(value).get(key) for key in changed):
        return value
    twin = copy.copy(value)
    for key, item in changed.items():
        object.__setattr__(twin, key, item)
    return twin


@dataclasses.dataclass(frozen=True)
class Fed:
    """``shapes``: all but the numbers of tensors; ``numbers``: those of real ones. None: cannot be compared."""

    shapes: Any
    numbers: Any


def fed(feed: Feed, items: int, real: tuple[str, ...]) -> Fed:
    """What a rank gets over all steps. A batch that is described in YAML is the same on every rank by definition."""
    shapes, numbers = [], []
    for i in range(items):
        chain = feed.chain(i)
        names = tuple(scenario.name for scenario in chain[1:] or chain)
        leaf = chain[-1]
        if leaf.loader is None and (leaf.file is not None or not _calls(leaf.batch)):
            shapes.append(names)
            continue
        found = _Print(real)
        try:
            found.add(feed.item(i), "batch", 0)
        except Exception as error:  # noqa: BLE001 (the user's code: the rank itself meets it again)
            shapes.append((names, type(error).__name__, str(error)))
            continue
        shapes.append((names, tuple(found.shapes)))
        numbers.append(found.numbers.hexdigest())
    return Fed(tuple(shapes), tuple(numbers))


def _calls(batch: Any) -> bool:
    if isinstance(batch, Mapping):
        return is_node(dict(batch)) or any(_calls(item) for item in batch.values())
    return isinstance(batch, list | tuple) and any(_calls(item) for item in batch)


class _Print:
    """The fingerprint of one batch."""

    def __init__(self, real: tuple[str, ...]):
        self.real, self.shapes, self.numbers = real, [], hashlib.sha256()

    def add(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            self.shapes.append((path, tuple(value.shape), str(value.dtype), value.requires_grad))
            known = not (value.is_floating_point() or value.is_complex()) or path in self.real
            if known and value.layout is torch.strided:
                self.numbers.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
                                    if value.numel() else b"-")
        elif isinstance(value, str | bytes | int | float | bool | type(None)):
            self.shapes.append((path, repr(value)))
        elif isinstance(value, Mapping) or hasattr(value, "keys"):
            for key in value.keys():  # noqa: SIM118
                self.add(value[key], f"{path}.{key}", depth + 1)
        elif isinstance(value, list | tuple) and depth < MAX_DEPTH:
            self.shapes.append((path, type(value).__name__, len(value)))
            for i, item in enumerate(value):
                self.add(item, f"{path}.{i}", depth + 1)
        elif hasattr(value, "__dict__") and depth < MAX_DEPTH:
            self.shapes.append((path, type(value).__name__))
            for key, item in vars(value).items():
                self.add(item, f"{path}.{key}", depth + 1)
        else:
            self.shapes.append((path, object()))            # equal to nothing else
