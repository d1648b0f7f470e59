"""A batch that was saved to a file: read as data, never as code."""

import os
import re
from pathlib import Path
from typing import Any

import torch

from ddplint.errors import SpecError

EXPECTED = "expected a tensor, or mappings, lists and tuples of tensors, as torch.save() writes them"


def saved_batch(folder: str, file: str, where: str) -> Any:
    """The batch, on the CPU. SpecError for anything that is no file of tensors; nothing in it is run."""
    path = Path(folder, file)
    if path.is_symlink():           # what is read is the file that the spec names; folders on the way may be links
        raise SpecError(f"{file} is a symbolic link to {os.readlink(path)}, which was not followed", where=where,
                        hint="name the file itself")
    if not path.exists():
        raise SpecError(f"{file} does not exist", where=where, hint=f"paths count from {folder}")
    if not path.is_file():          # opening a pipe or a device could wait for ever
        raise SpecError(f"{file} is a {'folder' if path.is_dir() else 'device or pipe'}", where=where, hint=EXPECTED)
    try:
        batch = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:      # zip, pickle and torch each raise their own; all mean that the file is not a batch
        raise SpecError(f"{file} {_found(path, error)}", where=where, hint=EXPECTED) from error
    if not any(isinstance(leaf, torch.Tensor) for leaf in _leaves(batch)):
        raise SpecError(f"{file} holds a {type(batch).__name__} without a tensor", where=where, hint=EXPECTED)
    return batch


def _found(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    code = re.search(r"GLOBAL ([\w.]+)", str(error))
    if code:
        return f"holds a {code[1]}, which is no tensor; it was not run"
    if "TorchScript" in str(error):
        return "holds a TorchScript program; it was not run"
    return "is not a file of tensors" if path.stat().st_size else "is empty"


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
