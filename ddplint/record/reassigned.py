"""Weight ties that an assignment broke while the model was built: two names held one parameter, and one got another since."""

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn
from torch.nn.parameter import is_lazy

from ddplint.evidence import Place, Tie
from ddplint.record.source import user_place

Part = nn.Parameter | nn.Module


@dataclass(slots=True, eq=False)
class Past:
    """What an attribute held before it was assigned anew."""

    owner: weakref.ref
    attribute: str
    part: Part
    place: Place | None


class Reassigned:
    def __init__(self):
        self.pasts: list[Past] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator["Reassigned"]:
        original = nn.Module.__setattr__

        def assign(module: nn.Module, name: str, value: object) -> None:
            if isinstance(value, Part):
                held = module._parameters if isinstance(value, nn.Parameter) else module._modules
                if (old := held.get(name)) is not None and old is not value:
                    self.pasts.append(Past(weakref.ref(module), name, old, user_place()))
            original(module, name, value)

        nn.Module.__setattr__ = assign
        try:
            yield self
        finally:
            nn.Module.__setattr__ = original

    def broken_ties(self, model: nn.Module) -> list[Tie]:
        """Pairs of trained parameters of one shape that were one parameter once."""
        now = dict(model.named_parameters(remove_duplicate=False))
        past = list(self._names(model)) if self.pasts else []
        found: dict[frozenset[str], Tie] = {}
        for name, held, until in past:
            others = [n for n, p in now.items() if p is held] + [n for n, p, _ in past if p is held]
            for other in others if not self._renamed(until) else ():
                exchanged = any(n == other and p is now.get(name) for n, p, _ in past)      # a, b = b, a
                if not exchanged and _differ(now.get(name), now.get(other)):
                    names = sorted((name, other), key=list(now).index)
                    found.setdefault(frozenset(names), Tie(names, f"one parameter until '{name}' was assigned anew", until.place))
        return list(found.values())

    def _names(self, model: nn.Module) -> Iterator[tuple[str, nn.Parameter, Past]]:
        """Today's name of each parameter's place, what it held before, and until when."""
        prefixes = {id(module): f"{prefix}." if prefix else "" for prefix, module in model.named_modules()}
        for past in self.pasts:
            prefix = prefixes.get(id(past.owner()))
            if prefix is not None:
                yield from ((f"{prefix}{past.attribute}{rest}", parameter, past) for rest, parameter in _held(past.part))

    def _renamed(self, past: Past) -> bool:
        """``net.old_head = net.head; net.head = Head()``: moved to a name that held nothing before."""
        owner = past.owner()
        name = next((name for name, part in [*owner._modules.items(), *owner._parameters.items()] if part is past.part), None)
        return name is not None and not any(other.owner() is owner and other.attribute == name for other in self.pasts)


def _held(part: Part) -> Iterator[tuple[str, nn.Parameter]]:
    if isinstance(part, nn.Parameter):
        yield "", part
    else:
        yield from ((f".{name}", p) for name, p in part.named_parameters(remove_duplicate=False))


def _differ(one: nn.Parameter | None, other: nn.Parameter | None) -> bool:
    if one is None or other is None or one is other or is_lazy(one) or is_lazy(other):
        return False
    return one.shape == other.shape and one.requires_grad and other.requires_grad
