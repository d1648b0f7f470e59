"""All parameters' states over ranks and steps, as bytes, so that thousands are looked at in one operation."""

import functools
import itertools
from collections.abc import Iterable, Sequence

from ddplint.evidence import FROZEN, NONE, NONFINITE, NONZERO, UNSEEN, ZERO

# A bit per state, so that the union over ranks or steps is an OR.
CODE = {NONE: 1, ZERO: 2, NONZERO: 4, NONFINITE: 8, FROZEN: 16, UNSEEN: 32}
GRADIENT = CODE[ZERO] | CODE[NONZERO] | CODE[NONFINITE]
OBSERVED = GRADIENT | CODE[NONE]
_TO_CODE = bytes(CODE.get(chr(i), CODE[UNSEEN]) for i in range(256))


def _flags(holds) -> bytes:
    return bytes(int(bool(holds(mask))) for mask in range(256))


_UNUSED = _flags(lambda m: m & CODE[NONE] and not m & GRADIENT)
_MIXED = _flags(lambda m: m & CODE[NONE] and m & GRADIENT)
_NEVER_NONZERO = _flags(lambda m: m & CODE[ZERO] and not m & (CODE[NONZERO] | CODE[NONFINITE]))
_NONFINITE = _flags(lambda m: m & CODE[NONFINITE])
_MISSING = _flags(lambda m: m & CODE[NONE])
_GRADIENT = _flags(lambda m: m & GRADIENT)
_OBSERVED = _flags(lambda m: m & OBSERVED)
_ANY = _flags(bool)


class UseTable:
    """``uses`` maps (rank, step) to the use string of that step, of ``count`` characters."""

    def __init__(self, uses: dict[tuple[int, int], str], count: int):
        self.uses = {at: use for at, use in uses.items() if len(use) == count and use.strip(UNSEEN)}
        self.count = count
        self._codes = {at: use.encode("latin-1", "replace").translate(_TO_CODE) for at, use in self.uses.items()}

    def states(self, position: int) -> dict[tuple[int, int], str]:
        """(rank, step) -> state of one parameter."""
        return {at: use[position] for at, use in self.uses.items()}

    def _union(self, group: Iterable[bytes]) -> bytes:
        total = 0
        for codes in group:
            total |= int.from_bytes(codes, "little")
        return total.to_bytes(self.count, "little")

    def _unions(self, axis: int) -> list[bytes]:
        """Per step (axis 1) or per rank (axis 0), the union over the other."""
        groups: dict[int, set[bytes]] = {}
        for at, codes in self._codes.items():
            groups.setdefault(at[axis], set()).add(codes)
        return [self._union(group) for group in groups.values()]

    @functools.cached_property
    def mask(self) -> bytes:
        return self._union(set(self._codes.values()))

    @functools.cached_property
    def observed(self) -> Sequence[int]:
        """Trainable parameters of which at least one state is known."""
        return _positions(self.mask, _OBSERVED)

    @functools.cached_property
    def unused(self) -> Sequence[int]:
        """No gradient on any rank in any step."""
        return _positions(self.mask, _UNUSED)

    @functools.cached_property
    def used(self) -> Sequence[int]:
        return _positions(self.mask, _GRADIENT)

    @functools.cached_property
    def missing(self) -> Sequence[int]:
        """Without a gradient on some rank in some step."""
        return _positions(self.mask, _MISSING)

    @functools.cached_property
    def divergent(self) -> Sequence[int]:
        """In some step, a gradient on some ranks and none on others."""
        return self._mixed(1)

    @functools.cached_property
    def varying(self) -> Sequence[int]:
        """On some rank, a gradient in some steps and none in others."""
        return self._mixed(0)

    def _mixed(self, axis: int) -> Sequence[int]:
        flags = [union.translate(_MIXED) for union in self._unions(axis)]
        return _positions(self._union(flags), _ANY) if flags else []

    @functools.cached_property
    def zero(self) -> Sequence[int]:
        """A gradient of exactly zero wherever there was one."""
        return _positions(self.mask, _NEVER_NONZERO)

    @functools.cached_property
    def nonfinite(self) -> Sequence[int]:
        return _positions(self.mask, _NONFINITE)

    def missing_at(self, rank: int, step: int) -> Sequence[int]:
        codes = self._codes.get((rank, step))
        return _positions(codes, _MISSING) if codes else []

    def used_at(self, rank: int, step: int) -> Sequence[int]:
        codes = self._codes.get((rank, step))
        return _positions(codes, _GRADIENT) if codes else []

    def any_used_at(self, rank: int, step: int) -> bool:
        return 1 in self._codes.get((rank, step), b"").translate(_GRADIENT)


def over_scenarios(tables: Iterable[UseTable]) -> tuple[Sequence[int], Sequence[int]]:
    """Of one model's tables: (used in some step and not in another, used in none), over all scenarios, ranks and steps."""
    masks = [table.mask for table in tables]
    union = 0
    for mask in masks:
        union |= int.from_bytes(mask, "little")
    codes = union.to_bytes(max(map(len, masks), default=0), "little")
    return _positions(codes, _MIXED), _positions(codes, _UNUSED)


def _positions(codes: bytes, flags: bytes) -> Sequence[int]:
    chosen = codes.translate(flags)
    number = chosen.count(1)
    if number == len(codes):
        return range(number)
    return list(itertools.compress(range(len(codes)), chosen)) if number else []
