"""Globs over names, as ``match``, ``ignore`` and ``accept`` take them."""

import fnmatch
import functools
import re
from collections.abc import Iterable


class Globs:
    """``matches(name)`` is true where the name is equal to, or fits, one of the patterns; without patterns, always."""

    def __init__(self, patterns: Iterable[str]):
        self.patterns = tuple(patterns)
        self._exact = frozenset(self.patterns)
        self._expression = re.compile("|".join(fnmatch.translate(pattern) for pattern in self.patterns) or "(?s:.*)")

    def matches(self, name: str) -> bool:
        return name in self._exact or self._expression.match(name) is not None

    def __bool__(self) -> bool:
        return bool(self.patterns)


@functools.lru_cache(maxsize=1024)
def globs(patterns: tuple[str, ...]) -> Globs:
    return Globs(patterns)
