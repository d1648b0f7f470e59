"""The structure of one step, gathered piece by piece: outputs, terms, total, module calls, uses of shared parameters."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ddplint.evidence import Graph, Output, Place, Term, Use
from ddplint.record.flows import Flows
from ddplint.record.graph import Key, Walk, key_of, walk
from ddplint.record.leaves import leaves


@dataclass
class Seen:
    """A tensor and where it hung in the graph *before* the loss ran (in-place operations move it on)."""

    value: Any
    key: Key | None


class Structure:
    """Collects one step and turns it into a Graph; a step with several backwards gives their union."""

    def __init__(self, model: nn.Module):
        self.index = {id(p): i for i, p in enumerate(model.parameters())}
        self.count = len(self.index)
        self.shared = _shared(model)
        self.flows = Flows(model)
        self.begin()

    def begin(self) -> None:
        self.outputs: dict[str, tuple[Output, Key | None]] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.divided_at: dict[str, Place | None] = {}
        self.uses: list[tuple[Use, Key]] = []
        self.graph = Graph()
        self.flows.begin()
        self.reached: dict[int, torch.Tensor] = {}
        """Every leaf that a loss depended on, by id."""
        self.walks: list[Walk] = []

    # ------------------------------------------------------------------ gathering

    def add_outputs(self, outputs: Any) -> None:
        for path, tensor, visible in leaves(outputs):
            dtype = str(tensor.dtype).removeprefix("torch.")
            seen = Output(path, list(tensor.shape), dtype, tensor.requires_grad, visible)
            self.outputs[path] = (seen, key_of(tensor))
            self.tensors[path] = tensor

    def add_module(self, module: nn.Module, parent: str, output: Any) -> None:
        """A call of a module that owns a shared parameter; what ran without gradients on purpose is no use."""
        tensor = next((t for _, t, _ in leaves(output)), None)
        key = key_of(tensor)
        if key is None or not torch.is_grad_enabled():
            return
        for parameter, owners in self.shared[id(module)]:
            name = next((o for o in owners if o.rpartition(".")[0] == parent), owners[0])
            call = sum(1 for use, _ in self.uses if use.parameter == parameter and use.module == name)
            self.uses.append((Use(parameter, name, call, False), key))

    def close(self, terms: dict[str, Any], total: Any) -> None:
        """Walk once from the total, the terms and the outputs, and note who reaches what."""
        names, outputs = list(terms), list(self.outputs)
        roots = [key_of(total), *(key_of(terms[n]) for n in names), *(self.outputs[p][1] for p in outputs)]
        seen = walk(roots)
        self.walks.append(seen)
        reach = self._reach(seen, len(roots))
        self.graph.total = _hex(int(self.graph.total, 16) | reach[0])
        self.graph.opaque = sorted(set(self.graph.opaque) | seen.opaque)
        self.graph.terms = [self._term(name, terms[name], reach[1 + i], seen) for i, name in enumerate(names)]
        for i, path in enumerate(outputs):
            output, key = self.outputs[path]
            hit = seen.reached_by(key)
            output.behind = _hex(int(output.behind, 16) | reach[1 + len(names) + i])
            output.in_total = output.in_total or bool(hit & 1)
            output.terms = sorted({*output.terms, *(n for j, n in enumerate(names) if hit >> (1 + j) & 1)})
        for use, key in self.uses:
            use.in_total = use.in_total or bool(seen.reached_by(key) & 1)
        ends = {f"output:{p}": self.outputs[p][1] for p in outputs} | {f"term:{n}": key_of(terms[n]) for n in names}
        links = self.flows.links(seen, ends | {"total:": roots[0]})
        self.graph.flows = sorted(map(list, {tuple(link) for link in self.graph.flows + links}))
        by_loss = (1 << (1 + len(names))) - 1
        self.reached |= {i: seen.tensors[i] for i, hit in seen.leaves.items() if hit & by_loss}

    def _term(self, name: str, value: Any, reach: int, seen: Walk) -> Term:
        hit = bool(seen.reached_by(key_of(value)) & 1)
        return Term(name, key_of(value) is not None, _hex(reach), hit, self.divided_at.get(name))

    def _reach(self, seen: Walk, roots: int) -> list[int]:
        """Per root, the bitset of the parameters that it depends on."""
        masks = [0] * roots
        for leaf, hit in seen.leaves.items():
            position = self.index.get(leaf)
            if position is None:
                continue
            while hit:
                low = hit & -hit
                masks[low.bit_length() - 1] |= 1 << position
                hit ^= low
        return masks

    def nonfinite_outputs(self) -> list[str]:
        """Read only where the loss is not finite: it costs a pass over every output."""
        return [path for path, tensor in self.tensors.items() if not bool(torch.isfinite(tensor.detach()).all())]

    def terms_of(self, leaf: int) -> list[str]:
        """The terms that depend on a leaf, by its id."""
        hit = self.walks[-1].leaves.get(leaf, 0) if self.walks else 0
        return [term.name for i, term in enumerate(self.graph.terms) if hit >> (1 + i) & 1]

    # ------------------------------------------------------------------ result

    def result(self, calls: dict[str, int]) -> Graph:
        self.graph.outputs = [output for output, _ in self.outputs.values()]
        self.graph.uses = [use for use, _ in self.uses]
        self.graph.calls = dict(calls)
        return self.graph

    def release(self) -> None:
        """Let go of the nodes from the roots down, when nothing else holds them any more.

        A node whose Python object is dropped last frees its whole chain recursively, which overflows the C stack
        from some 40,000 nodes in a row on (torch 2.13).
        """
        self.outputs, self.tensors, self.uses, self.reached = {}, {}, [], {}
        self.flows.begin()
        for seen in self.walks:
            order, seen.alive = seen.alive, []
            order.reverse()
            while order:
                order.pop()
        self.walks = []


def _hex(mask: int) -> str:
    return f"{mask:x}"


def _shared(model: nn.Module) -> dict[int, list[tuple[str, list[str]]]]:
    """Module -> (parameter, the module's names) for every parameter that has more than one name."""
    names: dict[int, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    shared: dict[int, list[tuple[str, list[str]]]] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for p in module._parameters.values():
            if p is not None and len(names[id(p)]) > 1:
                entry = shared.setdefault(id(module), [])
                known = next((owners for first, owners in entry if first == names[id(p)][0]), None)
                if known is None:
                    entry.append((names[id(p)][0], known := []))
                if prefix not in known:
                    known.append(prefix)
    return shared
