"""What one rank saw of one step, as a vector of numbers that travels in a single collective."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ddplint.evidence import FROZEN, NONE, NONFINITE, NONZERO, UNSEEN, ZERO

STATES = UNSEEN + NONE + ZERO + NONZERO + NONFINITE + FROZEN
TERMS = 16
"""How many loss terms have a place in the vector."""
HEAD = 4
"""valid, step, whether there is a total, the total."""


@dataclass
class Reading:
    step: int
    use: str
    """A character per parameter, as StepSeen.use."""
    synced: str
    """The same for the backward that DDP reduced; UNSEEN where that is the whole step."""
    sizes: list[float]
    signatures: list[float]
    """Per parameter, after the optimizer's step; see record.signature. NaN: none was taken."""
    total: float | None = None
    terms: list[float | None] = field(default_factory=list)
    """Values in the order in which this rank first named the terms."""

    def vector(self) -> list[float]:
        terms = (self.terms + [None] * TERMS)[:TERMS]
        return [1.0, float(self.step), float(self.total is not None), self.total or 0.0,
                *(float(STATES.index(state)) for state in self.use + self.synced), *self.sizes, *self.signatures,
                *(float(term is not None) for term in terms), *(0.0 if term is None else term for term in terms)]


def length(parameters: int) -> int:
    return HEAD + 4 * parameters + 2 * TERMS


def from_vector(vector: Sequence[float], parameters: int) -> Reading | None:
    """The inverse; None where that rank could not read (a vector of zeros)."""
    if not vector or vector[0] != 1.0:
        return None
    parts, start = [], HEAD
    for count in (parameters, parameters, parameters, parameters, TERMS, TERMS):
        parts.append(vector[start:start + count])
        start += count
    use, synced, sizes, signatures, there, values = parts
    terms = [value if known else None for known, value in zip(there, values, strict=True)]
    return Reading(int(vector[1]), _states(use), _states(synced), list(sizes), list(signatures),
                   vector[3] if vector[2] else None, terms)


def _states(codes: Sequence[float]) -> str:
    return "".join(STATES[int(code)] for code in codes)


def unread(step: int, use: str) -> Reading:
    """Of a step that was not sampled, where DDP itself tells who had no gradient."""
    return Reading(step, use, UNSEEN * len(use), [0.0] * len(use), [math.nan] * len(use))
