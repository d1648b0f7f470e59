"""The model as it was when DDP was built, and what has become of it since."""

import functools
import inspect
import linecache
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin

from ddplint.evidence import Change, Model, Module, Parameter, Place, Stray
from ddplint.record.hidden import derived, hidden, name_outside
from ddplint.record.source import is_user_file, place_at


def snapshot(model: nn.Module) -> Model:
    """The structure of the model: DDP's parameters in its own order, then the modules and buffers."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    parameters = [_parameter(name, p, names[id(p)]) for name, p in model.named_parameters()]
    modules = [_module(name, m) for name, m in model.named_modules()]
    buffers = {name: [] if _lazy(b) else list(b.shape) for name, b in model.named_buffers()}
    return Model(type(model).__name__, parameters, modules, buffers)


def _parameter(name: str, p: nn.Parameter, names: list[str]) -> Parameter:
    shape = [] if _lazy(p) else list(p.shape)
    return Parameter(name, shape, str(p.dtype).removeprefix("torch."), p.requires_grad, name.rpartition(".")[0],
                     [other for other in names if other != name], not _lazy(p))


def _lazy(tensor: Any) -> bool:
    return isinstance(tensor, UninitializedTensorMixin)


def _module(name: str, module: nn.Module) -> Module:
    kind = type(module)
    batchnorm = isinstance(module, nn.modules.batchnorm._BatchNorm)
    return Module(name, kind.__name__, _class_place(kind), batchnorm, sum(1 for _ in module.children()))


def _class_place(kind: type) -> Place | None:
    file = getattr(inspect.getmodule(kind), "__file__", None)
    if file is None or not is_user_file(file):
        return None
    line = _class_line(file, kind.__name__)
    return place_at(file, line, kind.__name__) if line else None


@functools.cache
def _class_line(file: str, name: str) -> int | None:
    """Of several classes of that name the outermost, then the first. (inspect parses the whole file for every class.)"""
    found = [(len(match[1]), number) for number, line in enumerate(linecache.getlines(file), 1)
             if (match := re.match(rf"(\s*)class\s+{name}\b", line))]
    return min(found)[1] if found else None


class Since:
    """Compares the model with what it was when DDP was built."""

    def __init__(self, model: nn.Module, outside: Callable[[], dict[int, str]] = dict):
        self.model, self.outside = model, outside
        self.parameters = dict(model.named_parameters())
        self.ids = {id(p) for p in self.parameters.values()}
        self.frozen = {name for name, p in self.parameters.items() if not p.requires_grad}
        self.kind = {name: (p.dtype, p.device) for name, p in self.parameters.items()}
        # DDP's hooks sit on these nodes; a dtype or device round trip makes autograd create new ones.
        self.accumulators = {name: _accumulator(p) for name, p in self.parameters.items() if p.requires_grad}
        self.changes: dict[tuple[str, str], Change] = {}

    def look(self, step: int) -> list[Change]:
        """The changes that were not there before this step."""
        now = dict(self.model.named_parameters())
        found = [Change(name, what, step) for name, p in self.parameters.items() if (what := self._change(name, p, now))]
        new = [c for c in found if (c.parameter, c.what) not in self.changes]
        self.changes |= {(c.parameter, c.what): c for c in new}
        return new

    def _change(self, name: str, p: nn.Parameter, now: dict[str, nn.Parameter]) -> str | None:
        if now.get(name) is not p:
            return "identity" if name in now else "removed"
        if p.requires_grad != (name not in self.frozen):
            return "requires_grad"
        if (p.dtype, p.device) != self.kind[name]:
            return "dtype" if p.dtype != self.kind[name][0] else "device"
        if name in self.accumulators and _accumulator(p) is not self.accumulators[name]:
            return "hooks"
        return None

    def strays(self, optimizer: torch.optim.Optimizer | None, reached: dict[int, torch.Tensor]) -> dict[int, Stray]:
        """Parameters outside of DDP's set that get a gradient or stand in the optimizer, by id of the tensor.

        ``reached`` are the leaves that a loss depends on. A plain leaf tensor that no optimizer holds is no stray: users
        differentiate with respect to inputs, and hand a dummy to a reentrant checkpoint.
        """
        in_optimizer = {id(p): p for g in optimizer.param_groups for p in g["params"]} if optimizer else {}
        candidates = {i: p for i, p in (reached | in_optimizer).items()
                      if i not in self.ids and (isinstance(p, nn.Parameter) or i in in_optimizer)}
        if not candidates:
            return {}
        registered = {id(p): name for name, p in self.model.named_parameters()}
        held, computed = ({id(p): name for name, p in named(self.model)} for named in (hidden, derived))
        buffers = {id(b) for b in self.model.buffers()}
        outside = self.outside()
        found = {}
        for i, p in candidates.items():
            kind = "buffer" if i in buffers else "unregistered" if isinstance(p, nn.Parameter) else "tensor"
            kind = "created-later" if i in registered else kind if i in held else "derived" if i in computed else "outside"
            name = registered.get(i) or held.get(i) or computed.get(i) or name_outside(p, outside)
            if i in reached and p.requires_grad:
                found[i] = Stray(name, kind, i in in_optimizer, True)
        return found


def _accumulator(parameter: nn.Parameter) -> Any:
    """The parameter's AccumulateGrad node, or None where it has none."""
    if not parameter.requires_grad or _lazy(parameter):
        return None
    with torch.enable_grad():
        return parameter.view_as(parameter).grad_fn.next_functions[0][0]


def optimizer_coverage(optimizer: torch.optim.Optimizer, model: nn.Module, outside: dict[int, str]) -> dict[str, list[str]]:
    """missing: trainable but in no group; twice: in two places; foreign: trainable, in a group, not of the model."""
    counts: dict[int, int] = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            counts[id(p)] = counts.get(id(p), 0) + 1
    named = list(model.named_parameters())
    return {"missing": [name for name, p in named if p.requires_grad and id(p) not in counts],
            "twice": [name for name, p in named if counts.get(id(p), 0) > 1],
            "foreign": _foreign(optimizer, {id(p) for _, p in named} | {id(p) for _, p in hidden(model)}, outside)}


def _foreign(optimizer: torch.optim.Optimizer, own: set[int], outside: dict[int, str]) -> list[str]:
    strangers = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in own and p.requires_grad]
    return [name_outside(p, outside) for p in strangers]
