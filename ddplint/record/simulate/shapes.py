"""A quick path for operations on fake tensors: what was computed once for some shapes is not computed again.

FakeTensorMode has a cache of its own, but makes its keys of everything that a tensor may be; that takes most of a
simulation's time. Here only plain dense tensors count, and the key is what an operation's result depends on.
"""

from typing import Any, ClassVar

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

_CPU, _META = torch.device("cpu"), torch.device("meta")
_SIMPLE = (int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format, torch.device)
Plan = list[tuple[tuple, tuple, torch.dtype]]


class Shapes:
    plans: ClassVar[dict[Any, tuple[type, Plan]]] = {}
    """Operation and arguments -> the results; one for all simulated ranks of the process."""
    _kinds: ClassVar[dict[Any, str]] = {}

    def __init__(self, fake: FakeTensorMode):
        self.fake = fake

    def run(self, func: Any, types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        kind = self._kinds.get(func) or self._kinds.setdefault(func, _kind(func))
        if kind == "view":
            return self._view(func, types, args, kwargs)
        key = self._key(func, args, kwargs) if kind == "pure" else None
        if key is None:
            return self.fake.dispatch(func, types, args, kwargs)
        found = self.plans.get(key)
        if found is not None:
            made = [self._made(plan) for plan in found[1]]
            return made[0] if found[0] is torch.Tensor else found[0](made)
        result = self.fake.dispatch(func, types, args, kwargs)
        if (plan := _planned(result)) is not None:
            self.plans[key] = plan
        return result

    def _view(self, func: Any, types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if not isinstance(args[0], FakeTensor):
            return self.fake.dispatch(func, types, args, kwargs)
        with in_kernel_invocation_manager(self.fake):
            result = func(*args, **kwargs)
        return self._wrapped(result) if isinstance(result, torch.Tensor) else [self._wrapped(part) for part in result]

    def _wrapped(self, meta: torch.Tensor) -> FakeTensor:
        return FakeTensor(self.fake, meta, _CPU)

    def _made(self, plan: tuple) -> FakeTensor:
        shape, strides, dtype = plan
        with in_kernel_invocation_manager(self.fake):
            meta = torch.empty_strided(shape, strides, dtype=dtype, device=_META)
        return FakeTensor(self.fake, meta, _CPU)

    def _key(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        parts = [func]
        for value in args:
            if not _add(parts, value):
                return None
        for name, value in kwargs.items():
            parts.append(name)
            if not _add(parts, value):
                return None
        return tuple(parts)


def _add(parts: list, value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_conj() or value.is_neg():
            return False
        parts.append((value.shape, value.stride(), value.dtype, isinstance(value, FakeTensor) or value.dim() > 0))
        return True
    if isinstance(value, _SIMPLE):
        parts.append((type(value), value))
        return True
    if isinstance(value, list | tuple):
        parts.append(len(value))
        return all(_add(parts, item) for item in value)
    return False


def _kind(func: Any) -> str:
    """view, pure or other."""
    schema = func._schema
    aliases = [a.alias_info for a in (*schema.arguments, *schema.returns) if a.alias_info is not None]
    dynamic = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output, torch.Tag.inplace_view} & set(func.tags)
    if dynamic or any(info.is_write for info in aliases):
        return "other"
    if not aliases:
        return "pure"
    return "view" if func.is_view and schema.arguments[0].alias_info is not None else "other"


def _planned(result: Any) -> tuple[type, Plan] | None:
    many = isinstance(result, list | tuple)
    plan = []
    for tensor in result if many else (result,):
        if not isinstance(tensor, FakeTensor) or tensor.layout is not torch.strided or tensor.device != _CPU:
            return None
        plan.append((tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype))
    return (list if isinstance(result, list) else tuple if many else torch.Tensor), plan
