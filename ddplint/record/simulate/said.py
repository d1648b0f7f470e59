"""What a simulated rank has to say, on its way to the parent. Plain data, no torch."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Said:
    rank: int
    messages: list[tuple[str, Any]] = field(default_factory=list)
    """As a real rank's (observe.py)."""
    unknown: dict[str, str] = field(default_factory=dict)
    partly: dict[str, str] = field(default_factory=dict)
    sequence: list[tuple[int, str, Any]] = field(default_factory=list)
    """(step, what, Place or None) of each collective that it entered, in order: reductions, broadcasts, the user's."""
    unreduced: list[int] = field(default_factory=list)
    """The steps in which the optimizer stepped on gradients that DDP was not armed to reduce."""
    read: bool = False
    """Whether a step looked at real numbers (then only equal ones count as the same input)."""
    drew: bool = False
    """Whether a step drew random numbers that it looked at."""
    asked: list[Any] = field(default_factory=list)
    """A Place where the program asks for its rank."""
    foreseen: list[tuple[str, Any]] = field(default_factory=list)
    """What it says of all steps where DDP refuses nothing, if DDP refused some."""
    split: bool = False
    """Whether it is open what DDP would do."""
