"""A Python number that stands for one which a fake tensor does not hold."""

import operator
from collections.abc import Callable
from typing import Self

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Unknown(float):
    """A float whose value nobody knows. What is computed from it is unknown too; a comparison is a guess.

    It passes as the number 1.0 wherever C code looks at it (formatting, ``math``, torch's own arguments).
    """

    ask: Callable[[str], bool]
    """``ask(what)`` notes the guess and answers it."""

    def __new__(cls, ask: Callable[[str], bool]) -> Self:
        number = super().__new__(cls, 1.0)
        number.ask = ask
        return number

    def __bool__(self) -> bool:
        return self.ask("bool")

    def __int__(self) -> int:
        self.ask("int")
        return 1

    __hash__ = float.__hash__
    __trunc__ = __floor__ = __ceil__ = __int__

    def __round__(self, digits: int | None = None):
        return self if digits is not None else int(self)


def _unknown(self: Unknown, *_: object) -> Unknown:
    return Unknown(self.ask)


def _compared(name: str) -> Callable:
    def compare(self: Unknown, other: object) -> bool:
        return self.ask(name) if isinstance(other, int | float) else getattr(operator, name)(1.0, other)
    return compare


for _name in _ARITHMETIC:
    setattr(Unknown, f"__{_name}__", lambda self, other: _unknown(self) if isinstance(other, int | float) else NotImplemented)
    setattr(Unknown, f"__r{_name}__", lambda self, other: _unknown(self) if isinstance(other, int | float) else NotImplemented)
for _name in ("neg", "abs", "pos"):
    setattr(Unknown, f"__{_name}__", _unknown)
for _name in _COMPARISONS:
    setattr(Unknown, f"__{_name}__", _compared(_name))
