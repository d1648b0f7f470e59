"""What Python asks of a fake tensor: numbers, truth, arrays. Answered by a guess that knows the user's line."""

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from ddplint.record.simulate.world import World

T = torch.Tensor
NUMBERS = {T.item, T.__float__, T.__int__, T.__index__, T.__complex__}
ARRAYS = {T.numpy, T.__array__}
FINITE = {torch.isfinite: True, T.isfinite: True, torch.isnan: False, T.isnan: False, torch.isinf: False, T.isinf: False}
ASSIGNED = {T.data.__set__, T.grad.__set__}
_WATCHED = {*NUMBERS, *ARRAYS, T.tolist, T.__bool__, *FINITE, *ASSIGNED, T.__contains__, T.data_ptr}


class Questions(TorchFunctionMode):
    def __init__(self, world: "World"):
        super().__init__()
        self.world = world

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in _WATCHED or not args:
            return func(*args, **kwargs)
        if func in ASSIGNED:
            return func(*self._matching(*args))
        if not self.world.is_fake(args[0]):
            self.world.looked()
            return func(*args, **kwargs)
        return self._answer(func, args[0], args, kwargs)

    def _answer(self, func: Any, tensor: torch.Tensor, args: tuple, kwargs: dict) -> Any:
        world = self.world
        if func in FINITE:
            return torch.full((), FINITE[func]).expand(tensor.shape)
        if func is T.__bool__:
            return world.guess("bool", [tensor])
        if func in NUMBERS:
            number = world.number(tensor)
            return number if func is T.item else {T.__float__: float, T.__complex__: complex}.get(func, int)(number)
        if func is T.tolist:
            return self._listed(tensor)
        if func in ARRAYS:
            world.guess("numpy", [tensor], explorable=False)
            return self._array(tensor)
        if func is T.data_ptr:
            return id(tensor)
        return world.guess("in", [tensor])

    def _array(self, tensor: torch.Tensor) -> Any:
        draw = self.world.guesses.draw
        numbers = torch.ones(tensor.shape, dtype=torch.float64)
        if draw:
            generator = torch.Generator().manual_seed(draw)
            numbers = torch.rand(tensor.shape, dtype=torch.float64, generator=generator)
        return numbers.to(tensor.dtype).numpy()

    def _listed(self, tensor: torch.Tensor) -> Any:
        if tensor.dim() == 0:
            return self.world.number(tensor)
        return [self._listed(row) for row in tensor.unbind(0)]

    def _matching(self, tensor: torch.Tensor, value: Any) -> tuple[torch.Tensor, Any]:
        """A fake tensor's data and gradient are fake, too."""
        if isinstance(value, torch.Tensor) and self.world.is_fake(tensor) and not self.world.is_fake(value):
            value = self.world.like(value)
        return tensor, value
