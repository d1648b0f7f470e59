"""What a rank said, without what differs from run to run: equal runs give equal reports."""

import dataclasses
import re

from ddplint.evidence import Failure
from ddplint.record.member import Transcript

LAST_LINES = 3
LONGEST_LINE = 200
PASSING = (
    (re.compile(r" ?\(pid(?:\(s\))? [\d, ]+\)"), ""),                   # a DataLoader's workers
    (re.compile(r"\b0x[0-9a-f]{6,}"), "0x..."),                         # addresses in reprs
    # Whatever else lies on the GPU at that moment, and its number: ranks that run out of memory alike say so alike.
    (re.compile(r"(CUDA out of memory\. Tried to allocate [\d.]+ \w+\.) GPU \d+ has a total capacity of ([\d.]+ \w+) of which.*", re.DOTALL),
     r"\1 The GPU has \2."),
    (re.compile(r"(\[?\d+\.\d+\.\d+\.\d+\]?):\d+"), r"\1"),             # the peer's port
)
_ASSERTION = re.compile(r"([\w()]+): block: \[[\d,]+\], thread: \[[\d,]+\] (Assertion .* failed)")


def lasting(text: str) -> str:
    for pattern, instead in PASSING:
        text = pattern.sub(instead, text)
    return text


def told_failure(transcript: Transcript) -> Failure | None:
    """The rank's failure; with the program's last lines, where it ended without an exception that says why."""
    failure = transcript.failure
    if failure is None:
        return None
    ended = failure.kind in ("exited", "killed") and not failure.collateral
    printed = _asserted(transcript.output) or (_last_lines(transcript.output) if ended else [])
    return dataclasses.replace(failure, message=lasting(failure.message), printed=printed)


def _asserted(output: str) -> list[str]:
    """The assertions of CUDA kernels that did not hold; each of thousands of threads prints its own."""
    return list(dict.fromkeys(f"{kernel}: {assertion}" for kernel, assertion in _ASSERTION.findall(output)))[:LAST_LINES]


def _last_lines(output: str) -> list[str]:
    lines = [line.strip() for line in output.splitlines()]
    own = [lasting(_both_ends(line)) for line in lines if line and not re.match(r"\[(?:rank\d+\]:)?\[?[WEI]\d{4}", line)]     # torch's log
    return own[-LAST_LINES:]


def _both_ends(line: str) -> str:
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[:half]} ... {line[-half:]}"
