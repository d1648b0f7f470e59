"""The ``scenario`` section: what each rank is fed at each step."""

from typing import Any

from ddplint.compose import fields
from ddplint.errors import SpecError
from ddplint.spec import MODES, Scenario

SOURCES = ("batch", "loader", "file", "ranks", "sequence", "budget")
FILLS = ("normal", "uniform", "integers", "value")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")
AUTOCAST = ("bfloat16", "float16", "float32")


def scenarios(value: Any, where: str = "scenario") -> dict[str, Scenario]:
    """Every scenario by name; references are followed, and must end at a source."""
    found = {name: _scenario(name, item, f"{where}.{name}") for name, item in fields.mapping(value, where).items()}
    for scenario in found.values():
        _check_references(scenario, found, f"{where}.{scenario.name}")
    return found


def _scenario(name: str, value: Any, where: str) -> Scenario:
    given = fields.read(value, where, _READERS)
    sources = [key for key in SOURCES if key in given]
    if len(sources) != 1:
        what = f"has {' and '.join(sources)}" if sources else "says nothing about its batches"
        raise SpecError(what, where=where, hint=f"exactly one of {', '.join(SOURCES[:-1])}")
    return Scenario(name, **given)


def _check_references(scenario: Scenario, known: dict[str, Scenario], where: str, seen: tuple[str, ...] = ()) -> None:
    key = "ranks" if scenario.ranks else "sequence"
    for i, name in enumerate(getattr(scenario, key)):
        here = f"{where}.{key}[{i}]"
        if name not in known:
            raise SpecError(f"no scenario is called '{name}'", where=here, hint=fields.nearest(name, known))
        chain = (*seen, scenario.name)
        if name in chain:
            raise SpecError(f"refers to itself ({' > '.join((*chain, name))})", where=here)
        _check_references(known[name], known, here, chain)


def batch(value: Any, where: str) -> Any:
    """A node, or containers of nodes, tensor descriptions and plain values."""
    if not isinstance(value, dict | list):
        raise fields.wrong(value, where, "a mapping of tensors, or _target_", "image: {shape: [4, 3, 8, 8]}")
    return _batch_part(value, where)


def _batch_part(value: Any, where: str) -> Any:
    if fields.is_node(value):
        found = fields.node(value, where)
        base = found.get("base")         # of a generator: a batch, or the name of a scenario
        return found | {"base": _batch_part(base, f"{where}.base")} if isinstance(base, dict | list) else found
    if isinstance(value, dict) and "shape" in value:
        return _tensor(value, where)
    if isinstance(value, dict):
        if any(key in FILLS for key in value) and not any(isinstance(item, dict) for item in value.values()):
            raise SpecError("a tensor without a shape", where=where, hint="shape: [4, 3, 8, 8]")
        return {key: _batch_part(item, f"{where}.{key}") for key, item in fields.mapping(value, where).items()}
    if isinstance(value, list):
        return [_batch_part(item, f"{where}[{i}]") for i, item in enumerate(value)]
    return value


def _tensor(value: dict, where: str) -> dict[str, Any]:
    found = fields.read(value, where, _TENSOR)
    if "shape" not in found:
        raise fields.wrong(None, f"{where}.shape", "a list of sizes", "shape: [4, 3, 8, 8]")
    fills = [key for key in FILLS if key in found]
    if len(fills) > 1:
        raise SpecError(f"has {' and '.join(fills)}", where=where, hint=f"at most one of {', '.join(FILLS)}")
    return found


def _shape(value: Any, where: str) -> list[int]:
    if not isinstance(value, list):
        raise fields.wrong(value, where, "a list of sizes", "[] is a scalar")
    return [fields.whole(0)(size, f"{where}[{i}]") for i, size in enumerate(value)]


def _pair(value: Any, where: str) -> list:
    if not isinstance(value, list) or len(value) != 2:
        raise fields.wrong(value, where, "two numbers")
    for i, item in enumerate(value):
        fields.number(item, f"{where}[{i}]")
    return value


def _range(value: Any, where: str) -> list:
    low, high = _pair(value, where)
    if low > high:
        raise SpecError(f"{low} is above {high}", where=where, hint="[low, high]")
    return value


def _integers(value: Any, where: str) -> list[int]:
    for i, item in enumerate(_range(value, where)):
        if not isinstance(item, int):
            raise fields.wrong(item, f"{where}[{i}]", "a whole number")
    if value[0] == value[1]:
        raise SpecError(f"nothing lies from {value[0]} up to {value[1]}", where=where, hint="the upper end is excluded")
    return value


def _value(value: Any, where: str) -> Any:
    if not isinstance(value, bool | int | float):
        raise fields.wrong(value, where, "a number, or true or false")
    return value


def _dtype(value: Any, where: str) -> str:
    return fields.choice(*DTYPES)(value.removeprefix("torch.") if isinstance(value, str) else value, where)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise fields.wrong(value, where, "a list of scenario names")
    return fields.texts(value, where)


_TENSOR = {"shape": _shape, "dtype": _dtype, "normal": _pair, "uniform": _range, "integers": _integers, "value": _value}
_READERS = {
    "batch": batch,
    "loader": fields.node,
    "file": fields.text,
    "ranks": _names,
    "sequence": _names,
    "budget": fields.whole(1),
    "set": fields.mapping,
    "mode": fields.choice(*MODES),
    "autocast": fields.choice(*AUTOCAST),
    "accumulate": fields.whole(1),
}
