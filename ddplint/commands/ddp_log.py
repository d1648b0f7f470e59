"""A pasted log of a DDP job, read: which faults it shows, on which ranks, about which parameters."""

import re
from dataclasses import dataclass, field, replace

from ddplint.commands.faults import FAULTS, UNFINISHED, Fault

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INDICES = re.compile(r"Parameter\s+indices\s+which\s+did\s+not\s+receive\s+grad\s+for\s+rank\s+(\d+):((?:\s+\d+\b(?!:))*)")
_NAMES = re.compile(r"Parameters\s+which\s+did\s+not\s+receive\s+grad\s+for\s+rank\s+(\d+):\s*([^\n]*)")
_TWICE = re.compile(r"Parameter\s+at\s+index\s+(\d+)(?:\s+with\s+name\s+(\S+))?\s+has\s+been\s+marked\s+as\s+ready\s+twice")
_PREFIX = re.compile(r"\[[Rr]ank\s*(\d+)\]|-- Process (\d+) terminated")
_OWN_RANK = (
    re.compile(r"for\s+rank\s+(\d+)"),
    re.compile(r"Rank\s+(\d+)\s+(?:failed|has|is)"),
    re.compile(r"\[(\d+)\]:\s+params\["),
    re.compile(r"[Pp]rocess\s+(\d+)\s+terminated"),
)


@dataclass
class Sighting:
    """A fault in a log."""

    fault: Fault
    text: str
    """The words in which the log says it."""
    count: int = 1
    ranks: list[int] = field(default_factory=list)
    indices: dict[int | None, list[int]] = field(default_factory=dict)
    """Rank (None where the log does not say) -> positions among DDP's parameters, as DDP counts them."""
    names: dict[int | None, list[str]] = field(default_factory=dict)


def read(log: str) -> list[Sighting]:
    """What the log shows: causes before what only follows from them, each fault once."""
    log = _ANSI.sub("", log)
    sightings = [sighting for fault in FAULTS if (sighting := _sight(fault, log)) is not None]
    first = next((s for s in sightings if s.fault in UNFINISHED), None)
    sightings = [s for s in sightings if s is first or s.fault not in UNFINISHED]
    for sighting in sightings:
        _add_parameters(sighting, log)
    return sorted(map(_rank_divergent, sightings), key=lambda sighting: sighting.fault.collateral)


def _sight(fault: Fault, log: str) -> Sighting | None:
    matches = list(fault.pattern.finditer(log))
    if not matches:
        return None
    ranks = sorted({rank for match in matches if (rank := _rank_of(log, match)) is not None})
    return Sighting(fault, " ".join(matches[0].group().split()), len(matches), ranks)


def _rank_of(log: str, match: re.Match) -> int | None:
    """The rank that the message itself names, else the one whose line or traceback it stands in."""
    start, end = log.rfind("\n", 0, match.start()) + 1, log.find("\n", match.end())
    line = log[start:end if end >= 0 else len(log)]
    for pattern in _OWN_RANK:
        if own := pattern.search(line):
            return int(own[1])
    before = list(_PREFIX.finditer(log, max(0, start - 20_000), match.start()))
    return int(before[-1][1] or before[-1][2]) if before else None


def _add_parameters(sighting: Sighting, log: str) -> None:
    if sighting.fault.rule in ("unused-parameter", "static-graph-violated"):
        for match in _INDICES.finditer(log):
            sighting.indices[int(match[1])] = [int(index) for index in match[2].split()]
        for match in _NAMES.finditer(log):
            sighting.names[int(match[1])] = [name.strip() for name in match[2].split(",") if name.strip()]
        sighting.ranks = sorted({*sighting.ranks, *sighting.indices, *sighting.names})
    if sighting.fault.rule == "parameter-ready-twice" and (match := _TWICE.search(log)):
        rank = _rank_of(log, match)
        sighting.indices[rank] = [int(match[1])]
        if match[2]:
            sighting.names[rank] = [match[2]]


def _rank_divergent(sighting: Sighting) -> Sighting:
    """Ranks that name different parameters took different ways through the model."""
    told = list(sighting.indices.values())
    if sighting.fault.rule != "unused-parameter" or all(indices == told[0] for indices in told):
        return sighting
    fault = replace(sighting.fault, rule="rank-divergent-usage",
                    means="the ranks lack gradients of different parameters: they took different ways through the model")
    return replace(sighting, fault=fault)
