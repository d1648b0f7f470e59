"""Readers: each takes a value and the dotted key where it stands, and returns it checked, or raises SpecError."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ddplint.errors import SpecError
from ddplint.spec import Node

Reader = Callable[[Any, str], Any]

_KINDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def kind(value: Any) -> str:
    """What a value is, in YAML's words."""
    return "nothing" if value is None else _KINDS.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def wrong(value: Any, where: str, expected: str, hint: str = "") -> SpecError:
    if value is None or value in ([], {}):
        found = "nothing" if value is None else f"an empty {kind(value).split()[-1]}"
    else:
        found = kind(value) if isinstance(value, dict | list) else shown(value)
    return SpecError(f"expected {expected}, found {found}", where=where, hint=hint)


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint: the valid name most like this one, else the first few."""
    names = [str(n) for n in names]
    near = difflib.get_close_matches(str(name), names, 1)
    if near:
        return f"did you mean '{near[0]}'?"
    return "" if not names else f"one of {', '.join(sorted(names)[:12])}" + (", ..." if len(names) > 12 else "")


def mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(value, where, "a mapping")
    return {_key(key, where): item for key, item in value.items()}


def _key(key: Any, where: str) -> str:
    if isinstance(key, bool) or key is None:
        raise SpecError(f"a key reads as {str(key).lower()}", where=where, hint="YAML takes on, off, yes and no for "
                        "booleans: put the key in quotes")
    return str(key)


def read(value: Any, where: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The mapping's values, each read by the reader of its key; null counts as not given, an unknown key is an error."""
    found = {}
    for key, item in mapping(value, where).items():
        if key not in readers:
            raise SpecError(f"unknown key '{key}'", where=where, hint=nearest(key, readers))
        if item is not None:
            found[key] = readers[key](item, f"{where}.{key}")
    return found


def text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(value, where, "text")
    return value


def name(value: Any, where: str) -> str:
    """Text that YAML may have read as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text(value, where)


def flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(value, where, "true or false")
    return value


def whole(least: int) -> Reader:
    def reader(value: Any, where: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise wrong(value, where, f"a whole number of at least {least}")
        return value
    return reader


def number(value: Any, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise wrong(value, where, "a number")
    return float(value)


def positive(value: Any, where: str) -> float:
    if number(value, where) <= 0:
        raise wrong(value, where, "a number above 0")
    return float(value)


def choice(*options: str) -> Reader:
    def reader(value: Any, where: str) -> str:
        if value not in options:
            raise wrong(value, where, f"one of {', '.join(options)}", _did_you_mean(value, options))
        return value
    return reader


def _did_you_mean(value: Any, options: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(value), options, 1)
    return f"did you mean '{near[0]}'?" if near else ""


def texts(value: Any, where: str) -> tuple[str, ...]:
    """One text, or a list of them."""
    if isinstance(value, list):
        return tuple(name(item, f"{where}[{i}]") for i, item in enumerate(value))
    return (name(value, where),)


def severity(value: Any, where: str) -> str:
    """YAML 1.1 reads a bare ``off`` as false: both spellings are meant."""
    from ddplint.spec import SEVERITIES
    return choice(*SEVERITIES)("off" if value is False else value, where)


def is_node(value: Any) -> bool:
    return isinstance(value, dict) and "_target_" in value


def node(value: Any, where: str) -> Node:
    """A mapping with ``_target_``, a dotted path, and keywords for it."""
    found = mapping(value, where)
    if "_target_" not in found:
        near = difflib.get_close_matches("_target_", found, 1, cutoff=0.5)
        raise SpecError("_target_ is missing", where=where,
                        hint=f"did you mean '_target_' by '{near[0]}'?" if near else "_target_: my_pkg.MyThing")
    target = found["_target_"]
    if not isinstance(target, str) or "." not in target or not all(p.isidentifier() for p in target.split(".")):
        raise wrong(target, f"{where}._target_", "a dotted path", "my_pkg.my_module.MyThing")
    return found


def path(*roots: str) -> Reader:
    """A dotted path into what a step holds, such as ``output.seg``."""
    def reader(value: Any, where: str) -> str:
        if not isinstance(value, str) or not value:
            raise wrong(value, where, f"a path that starts with {' or '.join(roots)}")
        if value.split(".")[0] not in roots:
            raise SpecError(f"the path '{shown(value)[1:-1]}' does not start with {' or '.join(roots)}", where=where,
                            hint=nearest(value.split(".")[0], roots))
        if not all(value.split(".")):
            raise wrong(value, where, "names with single dots between them")
        return value
    return reader
