"""What had to be guessed: a number that a fake tensor does not hold, asked for by a line of the user's code."""

from dataclasses import dataclass, field

from ddplint.evidence import Place

SPIN = 200
"""Guesses at one line within one step after which a loop is let go."""


@dataclass
class Guess:
    """``explorable``: the answer is yes or no, and both were tried."""

    place: Place | None
    what: str
    """What was asked: bool, item, numpy, size, ..."""
    sources: list[str] = field(default_factory=list)
    """The batch tensors that decide it, as ``batch.mask``."""
    weights: bool = False
    """Whether the model's weights decide it too."""
    explorable: bool = True

    @property
    def key(self) -> tuple[str, int]:
        return (self.place.file, self.place.line) if self.place else ("", 0)


class Guesses:
    """The guesses of one simulated rank, and the answers that this run is to give.

    ``draw``: 0 answers every question for a number with 1; other draws answer with random ones.
    """

    def __init__(self, answers: dict[tuple[str, int], bool] | None = None, draw: int = 0):
        self.answers, self.draw = answers or {}, draw
        self.made: dict[tuple[str, int], Guess] = {}
        self._times: dict[tuple[str, int], int] = {}

    def begin_step(self) -> None:
        self._times.clear()

    def add(self, guess: Guess) -> bool:
        """Note it; the answer, where it is yes or no."""
        known = self.made.setdefault(guess.key, guess)
        known.explorable = known.explorable and guess.explorable
        known.weights = known.weights or guess.weights
        known.sources += [name for name in guess.sources if name not in known.sources]
        times = self._times[guess.key] = self._times.get(guess.key, 0) + 1
        answer = self.answers.get(guess.key, True)
        return answer if times <= SPIN else not answer
