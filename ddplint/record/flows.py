"""Which module's result goes into which: the links between modules, outputs, terms and the total of one step.

Only modules that own parameters count. A link leads from a module to whoever consumes its result with no other such
module in between; residual connections and functional operations are looked through.
"""

from typing import Any

from torch import nn

from ddplint.record.graph import Key, Walk, key_of
from ddplint.record.leaves import leaves


class Flows:
    def __init__(self, model: nn.Module):
        self.owners = {id(m) for m in model.modules() if any(p is not None for p in m._parameters.values())}
        self.home = {id(p): name.rpartition(".")[0] for name, p in model.named_parameters()}
        self.begin()

    def begin(self) -> None:
        self.made: dict[Any, str] = {}
        """Graph node -> the module whose output it is: the innermost, which is told first."""

    def add_output(self, name: str, output: Any) -> None:
        for _, tensor, _ in leaves(output):
            key = key_of(tensor)
            if key is not None and key[1] != -1:
                self.made.setdefault(key[0], name)

    def links(self, seen: Walk, ends: dict[str, Key | None]) -> list[list[str]]:
        """[source, target] pairs, sorted: sources are modules, targets modules or the names in ``ends``."""
        names = sorted({*self.made.values(), *self.home.values()})
        bit = {name: 1 << i for i, name in enumerate(names)}
        passed: dict[int, int] = {}                  # node -> bitset of the modules that a consumer of it reads
        links: dict[str, int] = {}
        for node in reversed(seen.alive):            # inputs first
            variable = getattr(node, "variable", None)
            below = bit.get(self.home.get(id(variable)), 0) if variable is not None else 0
            for child, _ in node.next_functions:
                below |= passed[id(child)] if child is not None else 0
            name = self.made.get(node)
            if name is not None:
                links[name] = links.get(name, 0) | below & ~bit[name]
                below = bit[name]
            passed[id(node)] = below
        for end, key in ends.items():
            if key is not None:
                links[end] = links.get(end, 0) | passed.get(id(key[0]), 0)
        return sorted([names[i], target] for target, sources in links.items() for i in _set_bits(sources))


def _set_bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
