"""Words and names made fit to print: shared by every format, so that they all say the same."""

import re
import unicodedata
from collections.abc import Iterable

# Not controls by category, yet they turn or hide what follows them: bidirectional marks, isolates and overrides.
_TURNING = {chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)}
_UNPRINTABLE = {"Cc", "Cs", "Cn", "Zl", "Zp"}      # controls, lone surrogates, noncharacters, line separators


def clean(text: object) -> str:
    """One harmless line: newlines and tabs become spaces, whatever else acts instead of being seen is spelt out.

    >>> clean("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if char in "\n\t\r" else _spelt(char) if _acts(char) else char for char in text)


def clean_lines(text: object) -> str:
    """As ``clean``, with the line breaks kept."""
    return "\n".join(clean(line) for line in str(text).replace("\r\n", "\n").split("\n"))


def _acts(char: str) -> bool:
    return char in _TURNING or unicodedata.category(char) in _UNPRINTABLE


def _spelt(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(name: str, width: int, head: float = 0.5) -> str:
    """``name`` with its middle cut out where it is longer than ``width``; ``head`` is the share of what comes before."""
    if len(name) <= width:
        return name
    before = int((width - 1) * head)
    return f"{name[:before]}…{name[len(name) - (width - 1 - before):]}"


def shorten_words(text: str, width: int) -> str:
    """Each overlong word of ``text`` shortened."""
    return " ".join(shorten(word, width) for word in text.split(" "))


def first_sentence(text: str) -> str:
    """Up to the first full stop or line break: torch's messages go on with advice."""
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def magnitude(count: int) -> str:
    """86_100_000 -> ``86.1 M``."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,}"


def ranges(numbers: Iterable[int], limit: int = 8) -> str:
    """[0, 1, 2, 5] -> ``0-2, 5``; after ``limit`` runs only how many numbers follow."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs[:limit]]
    rest = sum(b - a + 1 for a, b in runs[limit:])
    return ", ".join(texts + ([f"+{rest:,} more"] if rest else []))


def listed(names: list[str], limit: int | None) -> str:
    """The first ``limit`` names, and how many more there are; None lists all."""
    if limit is None or len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])}, +{len(names) - limit:,} more"
