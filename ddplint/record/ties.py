"""Weight ties: names that were one parameter, or are declared to be one, and are several now."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from ddplint.evidence import Place, Tie
from ddplint.record.reassigned import Reassigned
from ddplint.record.source import user_place


class Copies:
    """Notes which parameter each deep-copied parameter descends from, and out of which module, while a model is built."""

    def __init__(self):
        self.origin: dict[int, tuple[Any, Any, Place | None]] = {}
        """id of the copy -> (the original, the module that owned it, the user's line)."""
        self._alive: list[Any] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator["Copies"]:
        original = nn.Parameter.__deepcopy__

        def copied(parameter: nn.Parameter, memo: dict) -> nn.Parameter:
            fresh = id(parameter) not in memo
            result = original(parameter, memo)
            if fresh:
                self.origin[id(result)] = (parameter, _owner(parameter), user_place())
                self._alive.append(result)
            return result

        nn.Parameter.__deepcopy__ = copied
        try:
            yield self
        finally:
            nn.Parameter.__deepcopy__ = original

    def broken_ties(self, model: nn.Module) -> list[Tie]:
        """Copies of one parameter that several modules had shared; one of them at least is trained.

        Copies of one module (the layers of a transformer are made so) are no tie: only copies out of different owners.
        """
        groups: dict[int, list[tuple[str, nn.Parameter]]] = {}
        for name, parameter in model.named_parameters():
            if id(parameter) in self.origin:
                groups.setdefault(id(self.origin[id(parameter)][0]), []).append((name, parameter))
        return [Tie([name for name, _ in group], "deep-copied separately", self.origin[id(group[0][1])][2])
                for group in groups.values() if self._breaks_tie([p for _, p in group])]

    def _breaks_tie(self, copies: list[nn.Parameter]) -> bool:
        owners = {id(self.origin[id(p)][1]) for p in copies}
        return len(owners) > 1 and any(p.requires_grad for p in copies)


def _owner(parameter: nn.Parameter) -> Any:
    """The module whose copying led to this parameter's: ``copy.deepcopy`` calls itself with the thing as ``x``."""
    frame = sys._getframe(2)
    while frame is not None:
        thing = frame.f_locals.get("x") if frame.f_code.co_name == "deepcopy" else None
        if isinstance(thing, nn.Module) and any(p is parameter for p in thing._parameters.values()):
            return thing
        frame = frame.f_back
    return None


@contextlib.contextmanager
def ties_watched() -> Iterator[Callable[[nn.Module], list[Tie]]]:
    """While a model is built; then its broken ties."""
    with Copies().watched() as copies, Reassigned().watched() as reassigned:
        yield functools.partial(_broken_ties, copies, reassigned)


def _broken_ties(copies: Copies, reassigned: Reassigned, model: nn.Module) -> list[Tie]:
    """Each pair of names once, told by what shows its line; an assignment breaks nothing that is declared untied."""
    ties = copies.broken_ties(model) + ([] if any(_saying(model, False)) else reassigned.broken_ties(model))
    known = {frozenset(tie.names) for tie in ties}
    return ties + [tie for tie in declared_ties(model) if frozenset(tie.names) not in known]


def _saying(model: nn.Module, tied: bool) -> Iterator[tuple[str, nn.Module]]:
    """The modules that say, themselves or in their configuration, that their embeddings are tied (or that they are not)."""
    for prefix, module in model.named_modules():
        if any(getattr(said, "tie_word_embeddings", None) is tied for said in (module, getattr(module, "config", None))):
            yield prefix, module


def declared_ties(model: nn.Module) -> list[Tie]:
    """Input and output embeddings that the model, or its configuration, says are tied, with two different weights."""
    found = []
    for prefix, module in _saying(model, True):
        names = [_name_of(module, getter) for getter in ("get_input_embeddings", "get_output_embeddings")]
        if None not in names and names[0] != names[1]:
            found.append(Tie([f"{prefix}.{name}" if prefix else name for name in names], "declared by tie_word_embeddings"))
            break
    return found


def _name_of(module: nn.Module, getter: str) -> str | None:
    try:
        weight = getattr(module, getter)().weight
    except Exception:  # noqa: BLE001 (the library's own getter: absent, not implemented, or None)
        return None
    return next((name for name, p in module.named_parameters() if p is weight), None)
