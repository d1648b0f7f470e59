"""Parameters that take part although DDP did not see them: where they were made, and what they are called."""

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from ddplint.evidence import Cause, Place
from ddplint.record import syntax
from ddplint.record.causes.guards import place_of
from ddplint.record.construction import Construction
from ddplint.record.history import Site
from ddplint.record.snapshot import derived_parameters
from ddplint.record.source import is_user_file


@dataclass
class Stray:
    """A parameter that operations read although DDP did not see it."""

    parameter: nn.Parameter
    name: str
    reader: Site | None
    """The innermost user code that read it and does not belong to its owner."""


def asked_for(names: list[str], read: dict[int, tuple[nn.Parameter, Site | None]], model: nn.Module,
              outside: Callable[[], dict[int, str]]) -> dict[str, Stray]:
    """The strays that a request names (``*``: all), among those that were read (id -> parameter, reader)."""
    registered = {id(p): name for name, p in model.named_parameters()} if names else {}
    of_loss = outside() if names else {}
    known = {}
    for key, (parameter, reader) in read.items() if names else ():
        name = registered.get(key) or of_loss.get(key) or path_of(parameter, model) or _nameless(parameter)
        known[name] = Stray(parameter, name, reader)
    if "*" in names:
        return known
    known |= {name: Stray(p, name, None) for name, p in (derived_parameters(model) if names else ()) if name not in known}
    nameless = {_nameless(stray.parameter): stray for stray in known.values()}
    return {name: stray for name in names if (stray := known.get(name) or nameless.get(name)) is not None}


def _nameless(parameter: nn.Parameter) -> str:
    return f"parameter of shape {list(parameter.shape)}"


def why_stray(model: nn.Module, construction: Construction, wrapped: dict[str, int], stray: Stray) -> Cause:
    """Where the first part of its path from the model that DDP did not see was assigned; without a path, its reader.

    ``wrapped`` holds the ids of the modules that DDP saw, by name.
    """
    owner, attribute = _first_unseen(model, wrapped, stray.name)
    site = construction.site(owner, attribute)
    if site is None:
        return Cause("outside-ddp", "it belongs to no part of the wrapped model", place_of(stray.reader))
    if isinstance(getattr(owner, attribute), torch.Tensor) and getattr(owner, attribute) is not stray.parameter:
        return Cause("outside-ddp", f"'{attribute}' is computed from a parameter here, and is none itself", site.place)
    made = _made_late(construction, stray.parameter)
    if made is None:
        return Cause("outside-ddp", f"'{attribute}' is kept where nn.Module does not register it", site.place)
    if (id(owner), attribute) in construction.late:
        made = site
    return Cause("outside-ddp", "it is created after DDP was built", _presence_test(made, attribute) or made.place)


def why_changed(model: nn.Module, construction: Construction, wrapped: dict[str, int], name: str) -> Cause | None:
    """Where a parameter, or a module around it, was assigned anew after DDP was built."""
    owner, attribute = _first_unseen(model, wrapped, name)
    if (site := construction.late_site(owner, attribute)) is None:
        return None
    return Cause("changed", f"'{attribute}' is assigned anew after DDP was built", site.place)


def _first_unseen(model: nn.Module, wrapped: dict[str, int], name: str) -> tuple[nn.Module, str]:
    owner, parts = model, name.split(".")
    for i, part in enumerate(parts):
        child = getattr(owner, part, None)
        if not isinstance(child, nn.Module) or wrapped.get(".".join(parts[:i + 1])) != id(child):
            return owner, part
        owner = child
    return owner, ""


def _made_late(construction: Construction, parameter: nn.Parameter) -> Site | None:
    """Where a module registered the parameter, if that was after DDP was built."""
    for owner, attribute in construction.late:
        module = construction.assigned[owner, attribute][0]()
        if module is not None and getattr(module, "_parameters", {}).get(attribute) is parameter:
            return construction.site(module, attribute)
    return None


def _presence_test(site: Site, attribute: str) -> Place | None:
    """The ``if`` around an assignment that asks whether the attribute is there already (created on first use)."""
    function = syntax.function_of(site.code)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.If) and any(s.lineno <= site.line <= s.end_lineno for s in node.body) \
                and attribute in ast.unparse(node.test):
            return Site(site.code, 0, node.test.lineno).place
    return None


# ---------------------------------------------------------------------- names for parameters outside of the model

def path_of(parameter: nn.Parameter, model: nn.Module) -> str | None:
    """A path to a parameter from the model's attributes, else from the globals of the user's modules: ``CRITERION.W``."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if not (name.startswith("_") and name in _TORCH_ATTRIBUTES) and (path := _path_to(parameter, value, name, 0)):
                return f"{prefix}.{path}" if prefix else path
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and is_user_file(file):
            for name, value in list(vars(module).items()):
                if path := _path_to(parameter, value, name, 0):
                    return path
    return None


_TORCH_ATTRIBUTES = set(vars(nn.Module()))


def _path_to(parameter: nn.Parameter, value: object, path: str, level: int) -> str | None:
    if value is parameter:
        return path
    if isinstance(value, nn.Module):
        return next((f"{path}.{name}" for name, p in value.named_parameters() if p is parameter), None)
    if level > 2 or isinstance(value, type):
        return None
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    elif is_user_file(getattr(sys.modules.get(type(value).__module__), "__file__", None) or "<>"):
        items = getattr(value, "__dict__", {}).items()
    else:
        return None
    return next((found for key, item in items if (found := _path_to(parameter, item, f"{path}.{key}", level + 1))), None)
