"""What torch does not show to a TorchFunctionMode: autograd.Function, new parameters, collectives, who runs without gradients."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from ddplint.record.calls import tensors_in
from ddplint.record.history import Site, here
from ddplint.record.source import stack
from ddplint.record.trace import Tracer

COLLECTIVES = ("allgather", "_allgather_base", "all_gather_single", "allgather_into_tensor_coalesced", "gather", "reduce_scatter",
               "_reduce_scatter_base", "alltoall", "alltoall_base")
"""Methods of the process group whose first argument is written from their second."""


@contextlib.contextmanager
def shown_to(tracer: Tracer) -> Iterator[None]:
    """Patch autograd.Function, inference_mode, nn.Parameter and the process group for the time of the block."""
    held = torch.autograd.Function.__dict__["apply"]        # a classmethod; from torch 2.14 on one in C

    def apply(cls, *args, **kwargs):
        return held.__get__(None, cls)(*args, **kwargs)

    enter, leave = torch.inference_mode.__enter__, torch.inference_mode.__exit__

    def entering(guard) -> None:
        tracer.off.append((grad_mode_site(), False))
        enter(guard)

    def leaving(guard, *exc) -> None:
        if tracer.off:
            tracer.off.pop()
        leave(guard, *exc)

    tracer.grad_mode_site = grad_mode_site
    with contextlib.ExitStack() as undo:
        _replace(undo, torch.autograd.Function, "apply",
                 classmethod(lambda cls, *args, **kwargs: _apply(tracer, apply, cls, args, kwargs)))
        _replace(undo, torch.inference_mode, "__enter__", entering)
        _replace(undo, torch.inference_mode, "__exit__", leaving)
        _replace(undo, torch.nn.Parameter, "__new__", _new_parameter(tracer, torch.nn.Parameter.__new__))
        for name in COLLECTIVES:
            if hasattr(dist.ProcessGroup, name):
                _replace(undo, dist.ProcessGroup, name, _collective(tracer, name, getattr(dist.ProcessGroup, name)))
        yield


def _replace(undo: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    undo.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _new_parameter(tracer: Tracer, original: Callable) -> Callable:
    """A parameter that is made out of values with a graph cuts it off."""
    @staticmethod
    def new(cls: type, data: Any = None, requires_grad: bool = True) -> torch.nn.Parameter:
        result = original(cls, data, requires_grad)
        if tracer.phase not in ("", "build") and isinstance(data, torch.Tensor) and data.grad_fn is not None:
            tracer.note("nn.Parameter", [tracer.value_of(data)], [data], [result], cut=True)
        return result
    return new


def _collective(tracer: Tracer, name: str, original: Callable) -> Callable:
    """What a collective writes depends on what it reads, without a graph."""
    @functools.wraps(original)
    def collective(group, written, read, *args, **kwargs):
        result = original(group, written, read, *args, **kwargs)
        if tracer.phase:
            inputs = list(tensors_in(read))
            tracer.note(name.strip("_"), [tracer.value_of(tensor) for tensor in inputs], inputs, list(tensors_in(written)))
        return result
    return collective


def _apply(tracer: Tracer, original, cls, args: tuple, kwargs: dict):
    """A user's function is one operation; within torch's own (a reentrant checkpoint), each operation is seen."""
    if not tracer.phase:
        return original(cls, *args, **kwargs)
    if cls.__module__.startswith("torch."):
        with tracer.gradients_off(here(), cls.__name__ == "CheckpointFunction"):
            return original(cls, *args, **kwargs)
    inputs = list(tensors_in((args, kwargs)))
    before = [tracer.value_of(tensor) for tensor in inputs]
    result = tracer.quietly(functools.partial(original, cls), args, kwargs)
    results = [tensor for tensor in tensors_in(result) if not any(tensor is i for i in inputs)]
    if results:
        tracer.note(f"autograd function {cls.__name__}", before, inputs, results, ())
    return result


def grad_mode_site() -> Site | None:
    """Who switches gradients off: the decorated function, the ``with`` line, or the call of what does it inside."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "decorate_context" and code.co_filename.endswith("_contextlib.py"):
            wrapped = getattr(frame.f_locals.get("func"), "__code__", None)
            if wrapped is not None:
                return Site(wrapped, 0, wrapped.co_firstlineno)
        found = next(stack(frame), None)
        if found is None or found is frame:
            return here()
        frame = frame.f_back
    return None
