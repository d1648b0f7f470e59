"""Evidence on disk and from several jobs: read, write, merge."""

import dataclasses
import functools
import json
import re
import types
import typing
from typing import Any

from ddplint.errors import EvidenceError
from ddplint.evidence import SCHEMA_VERSION, Evidence, RankSeen, ScenarioSeen

PLAIN = {int, float, str}
"""Types that are in JSON what they are here."""
OF_A_JOB = ("model", "world_size", "steps", "engine", "ddp", "seed")
"""The keys of Evidence.spec in which the jobs of a sweep may differ."""


def to_plain(value: Any) -> Any:
    """A dataclass as JSON-ready data; fields at their default are left out, which keeps large evidence small."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(v) for f in dataclasses.fields(value) if (v := getattr(value, f.name)) != _default(f)}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if set(map(type, value)) <= PLAIN else [to_plain(item) for item in value]
    return value


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default          # MISSING, which equals no value, where the field is required


def to_json(evidence: Evidence) -> str:
    body = {"schema_version": SCHEMA_VERSION} | to_plain(dataclasses.replace(evidence, scenarios=[
        dataclasses.replace(seen, ranks=[_told_once(rank) for rank in seen.ranks]) for seen in evidence.scenarios]))
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _told_once(rank: RankSeen) -> RankSeen:
    return rank if rank.same_as is None else RankSeen(rank.rank, same_as=rank.same_as)


def _share(evidence: Evidence, source: str) -> Evidence:
    """Ranks that are the same as another get its lists back."""
    for seen in evidence.scenarios:
        first = {rank.rank: rank for rank in seen.ranks if rank.same_as is None}
        if missing := [rank.same_as for rank in seen.ranks if rank.same_as not in (None, *first)]:
            raise EvidenceError(f"{source}: scenario {seen.name} has no rank {missing[0]}, which others are said to be like")
        seen.ranks = [rank if rank.same_as is None else
                      dataclasses.replace(first[rank.same_as], rank=rank.rank, same_as=rank.same_as) for rank in seen.ranks]
    return evidence


def from_json(text: str, *, source: str = "evidence") -> Evidence:
    """Raises EvidenceError, with the place in the file, on anything that this version did not write.

    A file of several lines is what a monitor wrote: a line for each sample of one run.
    """
    if len(lines := text.rstrip("\n").split("\n")) > 1 and lines[0].startswith('{"schema_version"'):
        return _from_lines(lines, source)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{source} is not JSON ({error}); was it cut short?") from error
    version = body.get("schema_version") if isinstance(body, dict) else None
    if version != SCHEMA_VERSION:
        raise EvidenceError(f"{source}: expected schema_version {SCHEMA_VERSION}, found {version!r}; "
                            "write it again with this ddplint (report.evidence=FILE)")
    return _share(from_plain(Evidence, body, source), source)


def _from_lines(lines: list[str], source: str) -> Evidence:
    """The first line has the model; scenarios go on under their name. The last line may be cut short: a run was killed."""
    evidence = from_json(lines[0], source=f"{source}, line 1")
    known = {seen.name: seen for seen in evidence.scenarios}
    for number, line in enumerate(lines[1:], 2):
        try:
            part = from_json(line, source=f"{source}, line {number}")
        except EvidenceError:
            if number < len(lines):
                raise
            for seen in evidence.scenarios:
                seen.partly["steps"] = "the last line of the file was cut short"
            break
        evidence.spec |= part.spec
        for seen in part.scenarios:
            _go_on(known[seen.name], seen) if seen.name in known else evidence.scenarios.append(seen)
            known.setdefault(seen.name, seen)
    return evidence


def _go_on(known: ScenarioSeen, more: ScenarioSeen) -> None:
    """Add what a later line saw of a scenario."""
    ranks = {rank.rank: rank for rank in known.ranks}
    for rank in more.ranks:
        own = ranks[rank.rank]
        for step in rank.steps:
            step.graph = None if step.graph is None else _position(rank.graphs[step.graph], own.graphs)
        own.steps += rank.steps
        own.changes += rank.changes
        own.size = list(map(max, own.size, rank.size)) if own.size and rank.size else own.size or rank.size
        own.failure = own.failure or rank.failure
    known.differences += more.differences
    known.causes = more.causes | known.causes
    known.outcome = known.outcome if known.outcome.outcome != "ok" else more.outcome
    known.unknown = {aspect: why for aspect, why in known.unknown.items() if aspect in more.unknown}


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """The inverse of ``to_plain`` for the type ``kind``; unknown keys are passed over (a later version adds keys)."""
    if dataclasses.is_dataclass(kind):
        return _dataclass_from(kind, value, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return from_plain(next(a for a in arguments if a is not type(None)), value, where)
    if origin is list:
        if arguments[0] in PLAIN and isinstance(value, list) and set(map(type, value)) <= {arguments[0]}:
            return value
        return [from_plain(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_expect(list, value, where))]
    if origin is tuple:
        return tuple(from_plain(list[arguments[0]], value, where))
    if origin is dict:
        if arguments[1] in PLAIN and isinstance(value, dict) and set(map(type, value.values())) <= {arguments[1]}:
            return value
        return {k: from_plain(arguments[1], item, f"{where}.{k}") for k, item in _expect(dict, value, where).items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if kind is Any else _expect(kind, value, where)


def _dataclass_from(kind: Any, value: Any, where: str) -> Any:
    hints, required, body = *_shape(kind), _expect(dict, value, where)
    missing = [name for name in required if name not in body]
    if missing:
        raise EvidenceError(f"{where}: {missing[0]} is missing")
    return kind(**{name: from_plain(hint, body[name], f"{where}.{name}") for name, hint in hints.items() if name in body})


@functools.cache
def _shape(kind: type) -> tuple[dict[str, Any], list[str]]:
    """The fields with their types, and those that must be there."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    return {f.name: hints[f.name] for f in fields}, [f.name for f in fields if _default(f) is dataclasses.MISSING]


def _expect(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise EvidenceError(f"{where}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def merge(parts: list[Evidence]) -> Evidence:
    """The union of several jobs' evidence, as of a sweep; the same scenario of two models gets two names."""
    first, *rest = parts
    merged = Evidence(dict(first.spec), list(first.models), list(first.scenarios), dict(first.tried), first.version)
    for part in rest:
        offset = {i: _position(model, merged.models) for i, model in enumerate(part.models)}
        merged.tried |= part.tried
        for seen in part.scenarios:
            own, other = ({"ddp": {}} | spec for spec in (part.spec | seen.spec, first.spec))
            seen.spec = {key: own[key] for key in OF_A_JOB if key in own and own[key] != other.get(key)}
            seen.model = offset.get(seen.model, 0)
            seen.name = _free_name(seen.name, {other.name for other in merged.scenarios})
            merged.scenarios.append(seen)
    return merged


def _position(item: Any, known: list[Any]) -> int:
    """Its index, where it is added if it is new."""
    if item not in known:
        known.append(item)
    return known.index(item)


def name_in_job(scenario: str) -> str:
    """The name that a scenario had before it was merged with others of that name: ``typical#2`` -> ``typical``."""
    return re.sub(r"#\d+$", "", scenario)


def _free_name(name: str, taken: set[str]) -> str:
    candidate, count = name, 2
    while candidate in taken:
        candidate, count = f"{name}#{count}", count + 1
    return candidate
