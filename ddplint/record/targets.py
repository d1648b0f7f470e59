"""Nodes of the spec (``_target_`` and keywords) turned into the user's objects, in a rank."""

import difflib
import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

from ddplint.errors import SpecError
from ddplint.record.seam import called, guarded, nested
from ddplint.spec import Node


def locate(path: str, where: str) -> Any:
    """The object at a dotted path. SpecError if there is none; what the user's code raises at import passes through."""
    parts = path.split(".")
    for size in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:size])
        if not _is_module(name):
            continue
        value = importlib.import_module(name)
        for i, attribute in enumerate(parts[size:], size):
            if not hasattr(value, attribute):
                near = difflib.get_close_matches(attribute, dir(value), 1)
                raise SpecError(f"'{'.'.join(parts[:i])}' has no '{attribute}'", where=f"{where}._target_",
                                hint=f"did you mean '{near[0]}'?" if near else "")
            value = getattr(value, attribute)
        return value
    raise SpecError(f"no module named '{parts[0]}'", where=f"{where}._target_",
                    hint="the current folder and installed packages are searched")


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        # A parent that is no package, or is not there; anything else is an import inside the user's own code.
        if error.name and (name == error.name or name.startswith(error.name + ".") or "is not a package" in str(error)):
            return False
        raise
    except ValueError:          # a module without a spec, such as __main__
        return True


def bound(node: Node, where: str) -> Callable:
    """What is called where a call is due: an instance of a class, or a function with the YAML keywords bound."""
    target = _callable(node, where)
    partial = _partial(node, target, where)
    made = called(partial, where) if inspect.isclass(target) and not node.get("_partial_") else partial
    return guarded(made, where)


def build(node: Node, where: str, **run_values: Any) -> Any:
    """Call the target with its keywords, and with those run values whose names it takes."""
    target = _callable(node, where)
    accepted = {k: v for k, v in run_values.items() if k not in node and takes(target, k)}
    return called(_partial(node, target, where), where, **accepted)


def _callable(node: Node, where: str) -> Callable:
    target = locate(node["_target_"], where)
    if not callable(target):
        raise SpecError(f"'{node['_target_']}' is a {type(target).__name__}, not callable", where=f"{where}._target_",
                        hint="a class or a function")
    return target


def _partial(node: Node, target: Callable, where: str) -> Callable:
    keywords = {k: v for k, v in node.items() if k not in ("_target_", "_partial_")}
    if not keywords:
        return functools.partial(target)
    from hydra.utils import instantiate
    return nested(instantiate, {"_convert_": "all", **keywords, "_target_": node["_target_"], "_partial_": True}, where)


def takes(target: Callable, name: str) -> bool:
    """Whether the callable has a parameter of that name."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters


def is_node(value: Any) -> bool:
    return isinstance(value, dict) and "_target_" in value


def resolve(path: str, roots: dict[str, Any], where: str) -> Any:
    """The value at a path such as ``output.aux.0``: mapping keys, positions and attributes, whichever fits."""
    first, *rest = path.split(".")
    if first not in roots:
        raise SpecError(f"'{path}' starts with '{first}'", where=where, hint=f"paths start with {' or '.join(roots)}")
    value = roots[first]
    for i, part in enumerate(rest):
        value = _part(value, part, ".".join([first, *rest[:i]]), where)
    return value


def _part(value: Any, part: str, so_far: str, where: str) -> Any:
    if isinstance(value, dict) or hasattr(value, "keys"):
        keys = list(value.keys())
        for key in keys:
            if str(key) == part:
                return value[key]
        candidates = [str(key) for key in keys]
    elif part.isdigit() and isinstance(value, list | tuple):
        if int(part) < len(value):
            return value[int(part)]
        raise SpecError(f"'{so_far}' has {len(value)} entries, no [{part}]", where=where)
    else:
        candidates = [name for name in dir(value) if not name.startswith("_")]
    if hasattr(value, part):
        return getattr(value, part)
    near = difflib.get_close_matches(part, candidates, 1)
    hint = f"did you mean '{so_far}.{near[0]}'?" if near else f"it has {', '.join(sorted(candidates)[:8])}"
    raise SpecError(f"'{so_far}' ({type(value).__name__}) has no '{part}'", where=where, hint=hint)
