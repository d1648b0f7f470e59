"""The loss as a part of the program: the modules that its callables hold outside of the model."""

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

from ddplint.record.source import is_own_file

CONTAINERS = (list, tuple, dict)


def criterion_parameters(calls: list[Callable], model: nn.Module) -> dict[int, str]:
    """id -> ``criterion.weight`` for the parameters of the loss's own modules; of several, each bears its class's name."""
    own, roots = {id(module) for module in model.modules()}, {}
    for module in _held(calls, set()):
        if id(module) not in own and any(True for _ in module.parameters()):
            roots[id(module)] = module
    inner = {id(part) for module in roots.values() for part in module.modules() if part is not module}
    outermost = [module for key, module in roots.items() if key not in inner]
    several = len(outermost) > 1
    return {id(p): f"criterion.{f'{type(module).__name__}.' if several else ''}{name}"
            for module in outermost for name, p in module.named_parameters()}


def _held(value: Any, seen: set[int]) -> Iterator[nn.Module]:
    """Modules that a callable is, is bound to, closes over or reads from its file's globals, helpers included."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        yield value
        return
    for part in _parts(value):
        yield from _held(part, seen)


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
    call = type(value).__call__ if callable(value) else None
    return [*vars(value).values(), call] if isinstance(call, FunctionType) and hasattr(value, "__dict__") else []


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
