"""Parameters that take part although DDP did not see them: where they were made, and what they are called."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from ddplint.evidence import Cause, Place
from ddplint.record import syntax
from ddplint.record.causes.guards import place_of
from ddplint.record.construction import Construction
from ddplint.record.hidden import derived, hidden, name_outside
from ddplint.record.history import Site


@dataclass
class Stray:
    """A parameter, or a tensor that an optimizer holds, that operations read although DDP did not see it."""

    parameter: torch.Tensor
    name: str
    reader: Site | None
    """The innermost user code that read it and does not belong to its owner."""


def asked_for(names: list[str], read: dict[int, tuple[torch.Tensor, Site | None]], model: nn.Module,
              outside: Callable[[], dict[int, str]]) -> dict[str, Stray]:
    """The strays that a request names (``*``: all), among those that were read (id -> tensor, reader)."""
    if not names:
        return {}
    of_loss, of_model = outside(), {id(p): name for named in (hidden(model), model.named_parameters()) for name, p in named}
    known = {}
    for key, (tensor, reader) in read.items():
        name = of_model.get(key) or name_outside(tensor, of_loss)
        known[name] = Stray(tensor, name, reader)
    if "*" in names:
        return known
    known |= {name: Stray(p, name, None) for name, p in derived(model) if name not in known}
    return {name: known[name] for name in names if name in known}


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
        return Cause("outside-ddp", _unregistered(owner, attribute, stray.parameter), site.place)
    if (id(owner), attribute) in construction.late:
        made = site
    return Cause("outside-ddp", "it is created after DDP was built", _presence_test(made, attribute) or made.place)


def _unregistered(owner: nn.Module, attribute: str, tensor: torch.Tensor) -> str:
    if owner._buffers.get(attribute) is tensor:
        return f"'{attribute}' is a buffer, and no buffer is one of parameters(), whatever it is made of"
    if not isinstance(tensor, nn.Parameter):
        return f"'{attribute}' holds a plain tensor, which requires_grad=True does not make one of parameters()"
    return f"'{attribute}' is kept where nn.Module does not register it"


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


def _made_late(construction: Construction, parameter: torch.Tensor) -> Site | None:
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
