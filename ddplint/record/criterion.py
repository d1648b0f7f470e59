"""The loss as a part of the program: the modules that its callables hold outside of the model."""

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from ddplint.record.hidden import CONTAINERS, hidden, inside
from ddplint.record.source import is_own_file


def criterion_parameters(calls: list[Callable], model: nn.Module) -> dict[int, str]:
    """id -> ``criterion.weight`` for what is trained of the loss's own; of several modules or objects, each bears its class's name."""
    own, roots = {id(module) for module in model.modules()}, {}
    known = {id(p) for p in model.parameters()} | {id(p) for _, p in hidden(model)}
    for holder in _held(calls, set()):
        if id(holder) not in own and (trained := {id(p): name for name, p in _trained(holder) if id(p) not in known}):
            roots[id(holder)] = holder, trained
    inner = {id(part) for holder, _ in roots.values() if isinstance(holder, nn.Module) for part in holder.modules() if part is not holder}
    outermost = [root for key, root in roots.items() if key not in inner]
    several = len(outermost) > 1
    return {key: f"criterion.{f'{type(holder).__name__}.' if several else ''}{name}"
            for holder, trained in outermost for key, name in trained.items()}


def _trained(holder: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters of a module, and plain tensors that want a gradient in the attributes of any object."""
    if isinstance(holder, nn.Module):
        yield from holder.named_parameters()
        yield from hidden(holder)
        return
    for name, value in vars(holder).items():
        if isinstance(value, (torch.Tensor, *CONTAINERS)):
            yield from ((path, tensor) for path, tensor in inside(name, value, set()) if not isinstance(tensor, nn.Parameter))


def _held(value: Any, seen: set[int]) -> Iterator[Any]:
    """Modules and callable objects that a callable is, is bound to, closes over or reads from its file's globals, helpers included."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        yield value
        return
    if _is_object(value):
        yield value
    for part in _parts(value):
        yield from _held(part, seen)


def _is_object(value: Any) -> bool:
    """Whether it is an instance of a class of the user's with a ``__call__``."""
    return callable(value) and isinstance(type(value).__call__, FunctionType) and hasattr(value, "__dict__")


def _parts(value: Any) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, CONTAINERS):
        return list(value.values() if isinstance(value, dict) else value)
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, FunctionType):
        if not is_own_file(value.__code__.co_filename):
            return []
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        return [*cells, *(value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__)]
    return [*vars(value).values(), type(value).__call__] if _is_object(value) else []


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:          # a name that was not bound yet
        return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
