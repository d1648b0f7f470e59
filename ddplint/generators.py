"""Scenarios made from other scenarios, for use in YAML.

    one_class: {batch: {_target_: ddplint.generators.one_class_only, base: typical, keys: label}}

``base`` is the name of another scenario, or a batch described in place; each function gets the batch that is meant and
returns a new one. ``keys`` are dotted paths into the batch, one or several (``labels.boxes``; lists on the way are
walked, positions of a tuple are ``0``, ``1``, ...). SpecError where the batch has no such entry.
"""

import contextlib
import difflib
import fcntl
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ddplint.errors import SpecError

Edit = Callable[[torch.Tensor], Any]


# ---------------------------------------------------------------------- targets


def empty_targets(base: Any, keys: str | list[str], dim: int | None = None) -> Any:
    """No targets at all: the entries' extent along ``dim`` becomes 0.

    By default that is the second dimension of a tensor that holds the whole batch ([N, K, 4] to [N, 0, 4]), the first
    of one that belongs to a single sample (in a list, as detectors take them: [K, 4] to [0, 4]).
    """
    def emptied(tensor: torch.Tensor, inside: bool) -> torch.Tensor:
        along = dim if dim is not None else 0 if inside or tensor.ndim < 2 else 1
        return tensor.narrow(along, 0, 0)
    return _edited(base, keys, emptied)


def one_class_only(base: Any, keys: str | list[str], value: int = 0) -> Any:
    """Every label is the same class."""
    return _edited(base, keys, lambda tensor, inside: torch.full_like(tensor, value))


def all_labels_ignored(base: Any, keys: str | list[str], value: int = -100) -> Any:
    """Every label is the index that the loss ignores (-100 in torch and transformers)."""
    return _edited(base, keys, lambda tensor, inside: torch.full_like(tensor, value))


# ---------------------------------------------------------------------- sizes


def last_incomplete_batch(base: Any, size: int | None = None) -> Any:
    """The batch at an epoch's end: only the first ``size`` samples (default: half of them, at least one)."""
    samples = batch_size(base)
    return _first_samples(base, samples, max(1, samples // 2) if size is None else size)


def batch_of_one(base: Any) -> Any:
    """A single sample."""
    return _first_samples(base, batch_size(base), 1)


def short_sequences(base: Any, length: int = 1, keys: str | list[str] | None = None, dim: int = 1) -> Any:
    """Sequences cut to ``length``; without ``keys`` every tensor that is as long as the first one along ``dim``."""
    return _edited(base, keys or _sequences(base, dim), lambda tensor, inside: tensor.narrow(dim, 0, length))


def long_sequences(base: Any, length: int | None = None, keys: str | list[str] | None = None, dim: int = 1) -> Any:
    """Sequences repeated until they are ``length`` long (default: four times as long)."""
    def lengthened(tensor: torch.Tensor, inside: bool) -> torch.Tensor:
        wanted = length or 4 * tensor.shape[dim]
        times = -(-wanted // tensor.shape[dim])
        return torch.cat([tensor] * times, dim).narrow(dim, 0, wanted)
    return _edited(base, keys or _sequences(base, dim), lengthened)


# ---------------------------------------------------------------------- values


def missing_modality(base: Any, keys: str | list[str]) -> Any:
    """The entries become None, as where a sample has no image, no text or no sound."""
    return _edited(base, keys, lambda value, inside: None, whole=True)


def extreme_values(base: Any, keys: str | list[str] | None = None, scale: float = 1e4) -> Any:
    """Floating entries (all, or those named) times ``scale``; 0 makes them constant."""
    if keys is not None:
        return _edited(base, keys, lambda tensor, inside: tensor * scale)
    return _mapped(base, lambda tensor: tensor * scale if tensor.is_floating_point() else tensor)


# ---------------------------------------------------------------------- the project's own data


def train_batches(source: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
    """A data module's training batches, or a loader's own; each rank takes every world_size-th, epoch after epoch.

    A data module is anything with ``train_dataloader()``: prepare_data() is called by one rank at a time, then
    setup("fit"), as Lightning does it.
    """
    loader = source
    if hasattr(source, "train_dataloader"):
        if hasattr(source, "prepare_data"):
            with _one_at_a_time():
                source.prepare_data()
        if hasattr(source, "setup"):
            source.setup("fit")
        loader = source.train_dataloader()
    if not hasattr(loader, "__iter__"):
        raise SpecError(f"a {type(source).__name__} is no loader", where="batch.from",
                        hint="an iterable of batches, or an object with train_dataloader()")
    return itertools.islice(_endless(loader), rank, None, world_size)


def _endless(loader: Iterable) -> Iterator[Any]:
    while True:
        count = 0
        for count, batch in enumerate(loader, 1):  # noqa: B007 (counted)
            yield batch
        if count == 0:
            return


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Among the processes that lint in the same folder: it is the folder itself that is locked, which leaves no file."""
    folder = os.open(os.getcwd(), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):          # a network's file system may know no locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


# ---------------------------------------------------------------------- walking a batch


def batch_size(batch: Any) -> int:
    """How many samples a batch holds: the first extent of its first tensor, or the length of its first list."""
    for _, value, _ in entries(batch):
        if isinstance(value, torch.Tensor) and value.ndim:
            return len(value)
        if isinstance(value, list) and value:
            return len(value)
    raise SpecError("the batch has no tensor whose first extent could be its size", where="ddplint.generators")


def _first_samples(batch: Any, samples: int, size: int) -> Any:
    """Tensors and lists with one entry per sample are cut, wherever they stand; everything else stays."""
    if isinstance(batch, torch.Tensor):
        return batch[:size] if batch.ndim and len(batch) == samples else batch
    if hasattr(batch, "keys"):
        return {key: _first_samples(batch[key], samples, size) for key in batch.keys()}  # noqa: SIM118
    if isinstance(batch, list) and len(batch) == samples and all(isinstance(v, torch.Tensor | dict) for v in batch) \
            and not _is_batch(batch, samples):
        return batch[:size]
    if isinstance(batch, list | tuple):
        return type(batch)(_first_samples(value, samples, size) for value in batch)
    return batch


def _is_batch(values: list, samples: int) -> bool:
    """A list [images, labels] that is as long as the batch is large: its tensors hold all samples."""
    return all(isinstance(v, torch.Tensor) and v.ndim and len(v) == samples for v in values)


def _sequences(batch: Any, dim: int) -> list[str]:
    found = {path: value.shape[dim] for path, value, inside in entries(batch)
             if isinstance(value, torch.Tensor) and value.ndim > dim and not inside}
    length = next(iter(found.values()), None)
    if length is None:
        raise SpecError(f"no tensor has a dimension {dim}", where="ddplint.generators", hint="name them: keys: [input_ids]")
    return [path for path, extent in found.items() if extent == length]


def entries(value: Any, path: str = "", inside: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """(path, value, whether it lies in a list) of everything in a batch, containers included, outermost first."""
    if path:
        yield path, value, inside
    if hasattr(value, "keys"):
        for key in value.keys():  # noqa: SIM118
            yield from entries(value[key], f"{path}.{key}" if path else str(key), inside)
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from entries(item, f"{path}.{position}" if path else str(position), bool(path) and isinstance(value, list))


def _edited(batch: Any, keys: str | list[str], edit: Callable[[Any, bool], Any], whole: bool = False) -> Any:
    """A copy with the entries at ``keys`` edited: their tensors each, or (``whole``) what stands there."""
    for key in [keys] if isinstance(keys, str | int) else list(keys):
        found: list[str] = []
        batch = _at(batch, str(key).split("."), edit, whole, False, found)
        if not found:
            raise _unknown(batch, str(key))
    return batch


def _at(value: Any, parts: list[str], edit: Callable, whole: bool, inside: bool, found: list[str]) -> Any:
    if not parts:
        found.append("here")
        return edit(value, inside) if whole else _mapped(value, lambda tensor: edit(tensor, inside))
    if hasattr(value, "keys"):
        return {key: _at(value[key], parts[1:], edit, whole, inside, found) if str(key) == parts[0] else value[key]
                for key in value.keys()}  # noqa: SIM118
    if isinstance(value, list | tuple) and parts[0].isdigit():
        return type(value)(_at(item, parts[1:], edit, whole, inside, found) if str(i) == parts[0] else item
                           for i, item in enumerate(value))
    if isinstance(value, list | tuple):
        return type(value)(_at(item, parts, edit, whole, True, found) for item in value)
    return value


def _mapped(value: Any, edit: Edit) -> Any:
    if isinstance(value, torch.Tensor):
        return edit(value)
    if hasattr(value, "keys"):
        return {key: _mapped(value[key], edit) for key in value.keys()}  # noqa: SIM118
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, edit) for item in value)
    return value


def _unknown(batch: Any, key: str) -> SpecError:
    known = list(dict.fromkeys(".".join(p for p in path.split(".") if not p.isdigit()) or path for path, _, _ in entries(batch)))
    near = difflib.get_close_matches(key, known, 1)
    return SpecError(f"the batch has no '{key}'", where="ddplint.generators",
                     hint=f"did you mean '{near[0]}'?" if near else f"it has {', '.join(known[:8])}")
