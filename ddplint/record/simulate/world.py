"""The world of a simulated rank: every torch operation is looked at, and run on fake tensors where it must be.

Two modes. The dispatch mode sees each operation below autograd: with a fake input it runs on shapes alone, else for
real, so that integers, masks, positions and small constants keep their values. The function mode sees what Python asks
of a fake tensor (``.item()``, ``if``, ``.numpy()``), where the user's line is known.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from ddplint.record.batches import ProgramError
from ddplint.record.simulate import rewrites
from ddplint.record.simulate.guess import Guess, Guesses
from ddplint.record.simulate.questions import Questions
from ddplint.record.simulate.shapes import Shapes
from ddplint.record.simulate.unknown import Unknown
from ddplint.record.source import user_place

LARGE = 65_536
"""Elements from which on a new floating tensor is fake."""
MOST_ZEROS = 1_000_000
"""Elements up to which an operation that needs numbers is run on zeros."""
WEIGHTS = 1
"""The bit of a fake tensor that the model's weights went into; batch tensors have the bits above."""
SEEDED = torch.Tag.nondeterministic_seeded
_DEVICE = torch.ops.prim.device.default
DEPENDENT = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class Unknowable(ProgramError):
    """An operation needs numbers that a fake tensor does not hold, and no guess helps."""


class World:
    """What is fake, where it came from, what was guessed, and which real values the program looked at."""

    def __init__(self, answers: dict[tuple[str, int], bool] | None = None, draw: int = 0):
        self.fake = FakeTensorMode(allow_non_fake_inputs=True, static_shapes=True)
        self.shapes = Shapes(self.fake)
        self.guesses = Guesses(answers, draw)
        self.sources: dict[str, int] = {}
        """Path of a batch tensor -> its bit."""
        self.read = self.drew = False
        """Whether a step looked at real values, and whether it drew real random numbers."""
        self.in_step = False
        self._spoiled: dict[int, Any] = {}
        """Storages of real tensors that fake ones were written into -> something that keeps them alive."""

    @contextlib.contextmanager
    def active(self) -> Iterator["World"]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_parameters_fake(self))
            stack.enter_context(_Dispatch(self))
            stack.enter_context(Questions(self))
            yield self

    # ------------------------------------------------------------------ fake tensors

    def is_fake(self, tensor: Any) -> bool:
        return isinstance(tensor, FakeTensor) or (bool(self._spoiled) and isinstance(tensor, torch.Tensor)
                                                  and self._is_spoiled(tensor))

    def _is_spoiled(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage()._cdata in self._spoiled

    def spoil(self, tensor: torch.Tensor) -> None:
        """A fake tensor was written into this real one: its numbers mean nothing any more."""
        if tensor.layout is torch.strided:
            self._spoiled[tensor.untyped_storage()._cdata] = tensor.untyped_storage()

    def like(self, tensor: torch.Tensor, bits: int = 0) -> torch.Tensor:
        """A fake tensor of the same shape, strides and dtype, without a graph."""
        found = self.empty(tuple(tensor.shape), tensor.dtype, tuple(tensor.stride()) if tensor.layout is torch.strided else None)
        found._ddplint_from = bits
        return found

    def empty(self, shape: tuple, dtype: torch.dtype, strides: tuple | None = None) -> torch.Tensor:
        with torch.utils._python_dispatch._disable_current_modes(), self.fake, torch._C.DisableTorchFunction():
            return torch.empty(shape, dtype=dtype) if strides is None else torch.empty_strided(shape, strides, dtype=dtype)

    def source(self, path: str) -> int:
        return self.sources.setdefault(path, 2 << len(self.sources))

    # ------------------------------------------------------------------ guesses

    def guess(self, what: str, tensors: Any, explorable: bool = True) -> bool:
        bits = 0
        for tensor in tensors:
            bits |= getattr(tensor, "_ddplint_from", 0)
        return self.guess_from(what, bits, explorable)

    def guess_from(self, what: str, bits: int, explorable: bool = True) -> bool:
        names = [name for name, bit in self.sources.items() if bits & bit]
        return self.guesses.add(Guess(user_place(), what, names, bool(bits & WEIGHTS) or not bits, explorable))

    def number(self, tensor: torch.Tensor) -> Any:
        """What stands for the number of a fake tensor with one element."""
        if tensor.dtype is torch.bool:
            return self.guess("bool", [tensor])
        bits = getattr(tensor, "_ddplint_from", 0)
        if tensor.is_floating_point():
            return Unknown(lambda what: self.guess_from(what, bits))
        self.guess("int", [tensor], explorable=False)
        return 1 + self.guesses.draw

    def looked(self) -> None:
        self.read = self.read or self.in_step


class _Dispatch(TorchDispatchMode):
    def __init__(self, world: World):
        super().__init__()
        self.world = world

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False                # else each of ten thousand calls goes through a guard of the compiler's

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is _DEVICE:
            return args[0].fake_device if isinstance(args[0], FakeTensor) else func(*args)
        kwargs = kwargs or {}
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "meta":
            kwargs = {**kwargs, "device": torch.device("cpu")}
        tensors = _tensors(args, kwargs)
        if any(map(self.world.is_fake, tensors)):
            return self._fake(func, types, args, kwargs, tensors)
        return self._real(func, types, args, kwargs, tensors)

    # ------------------------------------------------------------------ real

    def _real(self, func, types, args, kwargs, tensors):
        world = self.world
        if not tensors and _numel(args) > LARGE and (kwargs.get("dtype") or torch.get_default_dtype()).is_floating_point:
            return world.fake.dispatch(func, types, args, kwargs)
        if world.in_step:
            if SEEDED in func.tags:
                world.drew = True
            if any(tag in func.tags for tag in DEPENDENT) or func in rewrites.READS or rewrites.has_mask(func, args):
                world.read = True
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.numel() > LARGE and result.is_floating_point() \
                and not func._schema.is_mutable and not func.is_view:
            return world.like(result)
        return result

    # ------------------------------------------------------------------ fake

    def _fake(self, func, types, args, kwargs, tensors):
        world, bits = self.world, 0
        for tensor in tensors:
            bits |= getattr(tensor, "_ddplint_from", 0)
        rewritten = rewrites.TABLE.get(func)
        if rewritten is not None:
            result = rewritten(world, func, args, kwargs)
        elif func._schema.is_mutable and (written := _written_real(func, args, kwargs)):
            for tensor in written:
                world.spoil(tensor)
            return written[0] if len(written) == 1 else tuple(written)
        else:
            result = self._run(func, types, args, kwargs)
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if isinstance(tensor, FakeTensor):
                tensor._ddplint_from = bits | getattr(tensor, "_ddplint_from", 0)
        return result

    def _run(self, func, types, args, kwargs):
        world = self.world
        if world._spoiled:
            args, kwargs = _mapped(args, world), _mapped(kwargs, world)
        try:
            return world.shapes.run(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException, NotImplementedError):
            return self._on_zeros(func, args, kwargs)

    def _on_zeros(self, func, args, kwargs):
        """The shape of the result may depend on numbers: it is run once on zeros. With real integers beside fake
        floats (labels beside scores) it is those that decide."""
        world, tensors = self.world, _tensors(args, kwargs)
        if not any(world.is_fake(t) and t.is_floating_point() for t in tensors) or all(map(world.is_fake, tensors)) \
                or any(world.is_fake(t) and not t.is_floating_point() for t in tensors):
            world.guess(str(func), tensors, explorable=False)
        if any(t.numel() > MOST_ZEROS for t in tensors):
            raise Unknowable(f"{func} needs the numbers of a tensor that is simulated")

        def zeros(value):
            return torch.zeros(value.shape, dtype=value.dtype) if isinstance(value, torch.Tensor) and world.is_fake(value) else value
        result = func(*tree_map(zeros, args), **tree_map(zeros, kwargs))
        return tree_map(lambda t: world.like(t) if isinstance(t, torch.Tensor) and t.is_floating_point() else t, result)


def _written_real(func, args, kwargs) -> list[torch.Tensor]:
    """The real floating or integer tensors that a call with fake inputs writes into."""
    written = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            written += [t for t in _tensors((value,), {}) if not isinstance(t, FakeTensor)]
    return written


def _tensors(args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [item for item in value if isinstance(item, torch.Tensor)]
    return found


def _mapped(value: Any, world: World) -> Any:
    """Fake stand-ins for real tensors that were spoiled."""
    if isinstance(value, torch.Tensor):
        return value if isinstance(value, FakeTensor) or not world._is_spoiled(value) else world.like(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, world) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, world) for key, item in value.items()}
    return value


def _numel(args: tuple) -> int:
    count = 1
    for extent in args[0] if args and isinstance(args[0], list | tuple | torch.Size) else ():
        count *= extent if isinstance(extent, int) else 1
    return count


@contextlib.contextmanager
def _parameters_fake(world: World) -> Iterator[None]:
    """Parameters are made fake as they are made, and copied as parameters."""
    make, copy, copy_fake = nn.Parameter.__new__, nn.Parameter.__deepcopy__, FakeTensor.__dict__.get("__deepcopy__")

    def made(cls, data=None, requires_grad=True):
        if data is not None and not isinstance(data, FakeTensor) and cls is nn.Parameter and (
                data.is_floating_point() or data.is_complex()):
            data = world.like(data)
        parameter = make(cls, data, requires_grad) if data is not None else make(cls)
        parameter._ddplint_from = WEIGHTS
        return parameter

    def copied(tensor, memo):
        if not isinstance(tensor, FakeTensor):
            return copy(tensor, memo)
        if id(tensor) not in memo:
            memo[id(tensor)] = nn.Parameter(world.like(tensor), tensor.requires_grad) \
                if isinstance(tensor, nn.Parameter) else world.like(tensor, getattr(tensor, "_ddplint_from", 0))
        return memo[id(tensor)]

    def fake_copied(tensor, memo):
        return nn.Parameter.__deepcopy__(tensor, memo) if isinstance(tensor, nn.Parameter) else copied(tensor, memo)

    convert = nn.Module._apply
    nn.Parameter.__new__, nn.Parameter.__deepcopy__, FakeTensor.__deepcopy__ = staticmethod(made), copied, fake_copied
    nn.Module._apply = _converted
    try:
        yield
    finally:
        nn.Parameter.__new__, nn.Parameter.__deepcopy__, nn.Module._apply = make, copy, convert
        if copy_fake is None:
            del FakeTensor.__deepcopy__
        else:
            FakeTensor.__deepcopy__ = copy_fake


def _converted(module: nn.Module, fn: Any, recurse: bool = True) -> nn.Module:
    """``Module._apply`` by ``.data =``, as for real parameters; torch's own swaps fake ones, which keeps no hooks."""
    for child in module.children() if recurse else ():
        child._apply(fn)
    for parameter in module._parameters.values():
        if parameter is None:
            continue
        with torch.no_grad():
            parameter.data = fn(parameter)
            if parameter.grad is not None:
                parameter.grad.data = fn(parameter.grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module
