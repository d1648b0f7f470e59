"""One sampled step on this rank: hooks on the parameters, the walk of the graph, values that stay on the device."""

import contextlib
import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from ddplint.evidence import UNSEEN, Cause, Graph
from ddplint.monitor.reading import Reading
from ddplint.record.gradients import Gradients
from ddplint.record.signature import signatures
from ddplint.record.structure import Structure


class Sample:
    """Watches from its construction until ``read``; ``names`` are the model's parameters as they were at the start."""

    def __init__(self, ddp: DistributedDataParallel, step: int, trainable: Mapping[str, bool]):
        self.ddp, self.step, self.backwards, self._depth = ddp, step, 0, 0
        self.total: torch.Tensor | None = None
        self.terms: dict[str, torch.Tensor] = {}
        self.values: dict[str, torch.Tensor] = {}
        self.weights: dict[str, torch.Tensor] = {}
        self._named = dict(ddp.module.named_parameters())
        self._names = list(trainable)
        self._gradients = Gradients((name, p) for name, p in self._named.items() if name in trainable)
        self._gradients.trainable = [trainable[name] for name in self._gradients.names]
        self._structure, self.graph = Structure(ddp.module), Graph()
        self._modules = {id(module): name for name, module in ddp.module.named_modules()}
        self._calls: dict[str, int] = {}
        self._patches = contextlib.ExitStack()
        self._patches.callback(torch.nn.modules.module.register_module_forward_pre_hook(self._enter).remove)
        self._patches.callback(self._gradients.remove)
        original = torch.autograd.backward
        torch.autograd.backward = functools.wraps(original)(functools.partial(self._backward, original))
        self._patches.callback(setattr, torch.autograd, "backward", original)

    # ------------------------------------------------------------------ while the step runs

    def _enter(self, module: torch.nn.Module, args: Any) -> None:
        if not torch.compiler.is_compiling() and (name := self._modules.get(id(module))) is not None:
            self._calls[name] = self._calls.get(name, 0) + 1

    def add_outputs(self, outputs: Any) -> None:
        self._gradients.armed |= self.ddp.require_backward_grad_sync
        self._structure.add_outputs(outputs)

    def add_terms(self, terms: Mapping[str, Any]) -> None:
        for name, term in terms.items():
            if isinstance(term, torch.Tensor):
                self.terms[name], self.values[name] = term, term.detach().sum()
                if term.requires_grad:
                    term.register_hook(functools.partial(self._weigh, name))

    def _weigh(self, name: str, gradient: torch.Tensor) -> None:
        self.weights[name] = gradient.detach().sum()

    def _backward(self, original: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if self._depth:
            return original(tensors, *args, **kwargs)
        self._gradients.begin_backward()
        self._depth = 1
        try:
            self._note(tensors)
            return original(tensors, *args, **kwargs)
        finally:
            self._depth = 0
            self.backwards += 1
            self._gradients.end_backward(self.ddp.require_backward_grad_sync)
            self.graph = self._structure.result(self._calls)
            self._structure.release()
            self.terms = {}

    def _note(self, tensors: Any) -> None:
        for root in [tensors] if isinstance(tensors, torch.Tensor) else list(tensors):
            self.total = root.detach().sum()
            self._structure.close(self.terms, root)

    # ------------------------------------------------------------------ when it is over

    def stop(self) -> None:
        """Take all hooks and patches away."""
        self._patches.close()
        self._structure.release()

    def read(self, term_names: list[str]) -> Reading:
        """Everything is moved to the host here, in three transfers, and not before."""
        use, synced = self._gradients.states(), self._gradients.synced()
        known = signatures([(name, p) for name, p in self._named.items() if not p.is_meta])
        total, *values = self._on_host([self.total, *(self.values.get(name) for name in term_names)])
        return Reading(
            self.step, self._in_order(use), self._in_order(synced[-1] if synced else UNSEEN * len(use)),
            self._in_order(self._gradients.size), [known.get(name, float("nan")) for name in self._names], total, values)

    def weights_on_host(self) -> dict[str, float]:
        return dict(zip(self.weights, self._on_host(list(self.weights.values())), strict=True))

    def _in_order(self, per_parameter: Any) -> Any:
        """Of the parameters at the start; those that have gone since are UNSEEN."""
        if list(self._gradients.names) == self._names:
            return per_parameter
        known = dict(zip(self._gradients.names, per_parameter, strict=True))
        text = isinstance(per_parameter, str)
        found = [known.get(name, UNSEEN if text else 0.0) for name in self._names]
        return "".join(found) if text else found

    @staticmethod
    def _on_host(values: list[torch.Tensor | None]) -> list[float | None]:
        present = [value.double() for value in values if value is not None]
        numbers = iter(torch.stack(present).tolist() if present else [])
        return [None if value is None else next(numbers) for value in values]

    def first_nonfinite(self) -> Cause | None:
        """Where the backward pass met the first gradient that is not finite, on this rank."""
        name = self._gradients.first_nonfinite()
        if name is None:
            return None
        module = name.rpartition(".")[0]
        return Cause("nonfinite", f"in the backward pass it first appears at {module or name}", module=module)
