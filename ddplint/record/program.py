"""The user's program, from the spec: model, optimizer, batches, and the phases of one step.

Used alike by the real run (observe.py) and by the solo run that looks for causes (solo.py). Needs no process group.
"""

import functools
import inspect
from collections.abc import Callable, Collection
from numbers import Number
from typing import Any

import torch
from torch import nn

from ddplint.errors import SpecError
from ddplint.record.batches import Feed, ProgramError, seed
from ddplint.record.criterion import criterion_parameters
from ddplint.record.lightning import LightningRun, Optimizers, is_lightning
from ddplint.record.seam import called
from ddplint.record.targets import bound, build, is_node, locate, resolve
from ddplint.spec import Spec


class Program:
    """One scenario of the spec on one rank. The user's callables are resolved once, when the program is built."""

    def __init__(self, spec: Spec, scenario: str, rank: int, world_size: int, device: torch.device):
        self.spec, self.scenario, self.rank, self.world_size, self.device = spec, scenario, rank, world_size, device
        self.feed = Feed(spec, scenario, rank, world_size, device)
        self.model: nn.Module | None = None
        self.lightning: LightningRun | None = None
        """Where the model is a LightningModule and the spec says nothing else: its training_step is what is run."""
        self._set: dict[str, Any] = {}
        self._mode: bool | None = None
        self._losses: list[Callable] = []
        """The callables of the loss."""
        self.change: Callable[[nn.Module], None] = lambda model: None
        """Done to the model as soon as it is built: a remedy that is tried."""
        self.add: Collection[str] = ()
        """Loss terms that are added to the total: another one."""

    # ------------------------------------------------------------------ building

    def resolve(self) -> None:
        """Import everything that the spec names; whatever the user's modules raise passes through."""
        spec = self.spec
        locate(spec.model["_target_"], "model")
        self._forward = bound(spec.forward, "forward") if is_node(spec.forward) else None
        self._step = bound(spec.step, "step") if spec.step else None
        self._total = self._loss(spec.loss.total, "loss.total") if spec.loss.total else None
        self._terms = self._bind_terms(spec.loss.terms)

    def build(self) -> nn.Module:
        """The unwrapped model: under one seed on every rank, on the device, in the scenario's mode."""
        seed(self.spec.run.seed, 0, 0)
        model = build(self.spec.model, "model")
        if not isinstance(model, nn.Module):
            raise SpecError(f"'{self.spec.model['_target_']}' returned a {type(model).__name__}", where="model",
                            hint="a callable that returns an nn.Module")
        if is_lightning(model) and not (self.spec.forward or self.spec.loss.terms or self.spec.loss.total or self.spec.step):
            self.lightning = LightningRun(model, self.rank, self.world_size)
            self._terms = self.lightning.terms
        if self.spec.run.engine != "simulate":
            _refuse_meta(model)
        self.change(model)
        self.model = model if self.device.type == "cpu" else model.to(self.device)
        return self.model

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer | Optimizers:
        """An Optimizer class gets the trainable parameters, any other callable the model; the default is SGD, lr 0.01."""
        made = self._made_optimizer(model)
        return made if hasattr(made, "param_groups") else Optimizers(made)

    def _made_optimizer(self, model: nn.Module) -> Any:
        if self.lightning is not None and self.spec.optimizer is None:
            return self.lightning.make_optimizer()
        node = self.spec.optimizer or {"_target_": "torch.optim.SGD", "lr": 0.01}
        target = locate(node["_target_"], "optimizer")
        partial = bound({**node, "_partial_": True}, "optimizer")
        if inspect.isclass(target) and issubclass(target, torch.optim.Optimizer):
            return partial([p for p in model.parameters() if p.requires_grad])
        return partial(model)

    def outside(self) -> dict[int, str]:
        """Names of the parameters that belong to the loss and not to the model, by id."""
        return criterion_parameters(self._losses, self.model)

    # ------------------------------------------------------------------ one step

    @property
    def custom_step(self) -> bool:
        return self.spec.step is not None or (self.lightning is not None and self.lightning.manual)

    @property
    def accumulate(self) -> int:
        return next((s.accumulate for s in self.feed.chain(0) if s.accumulate != 1), 1)

    def prepare(self, step: int) -> None:
        """The scenario's mode and attributes, where they differ from what was set before this step."""
        chain = self.feed.chain(step * self.accumulate)
        wanted = {key: value for scenario in reversed(chain) for key, value in scenario.set.items()}
        for path, value in wanted.items():
            if path not in self._set or self._set[path] != value:
                assign(self.model, path, value)
        self._set = wanted
        mode = all(scenario.mode == "train" for scenario in chain)
        if mode is not self._mode:              # in between it is the step's own: a validation in it may change it
            enter_mode(self.model, mode)
        self._mode = mode

    def batch(self, item: int) -> Any:
        batch = self.feed.item(item)
        return batch if self.lightning is None else self.lightning.batch(batch, item)

    def autocast(self) -> torch.autocast:
        name = next((s.autocast for s in self.feed.chain(0) if s.autocast), None)
        dtype = getattr(torch, name) if name else None
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)

    def forward(self, wrapper: nn.Module, batch: Any) -> Any:
        if self.lightning is not None:
            return self.lightning.forward(wrapper, batch)
        if self._forward is not None:
            return self._forward(wrapper, batch)
        if isinstance(self.spec.forward, dict):
            keywords = {k: resolve(path, {"batch": batch}, f"forward.{k}") for k, path in self.spec.forward.items()}
            return called(wrapper, "forward", **keywords)
        if hasattr(batch, "keys"):
            positional, keywords = self._named_by_forward(batch)
            return called(wrapper, "forward", *positional, **keywords)
        return called(wrapper, "forward", batch)

    def _named_by_forward(self, batch: Any) -> tuple[list[Any], dict[str, Any]]:
        """The batch keys that the model's forward() names, as it takes them; all of them, if it takes ``**kwargs``."""
        parameters = inspect.signature(self.model.forward).parameters.values()
        first = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in batch.keys()]  # noqa: SIM118
        every = any(p.kind is p.VAR_KEYWORD for p in parameters)
        names = {p.name for p in parameters}
        keywords = {key: batch[key] for key in batch.keys() if key not in first and (every or key in names)}  # noqa: SIM118
        return [batch[name] for name in first], keywords

    def terms(self, outputs: Any, batch: Any) -> tuple[dict[str, Any], Any]:
        """Every term by name, and the total where the user's callable gave one (else None)."""
        return self._terms(outputs, batch)

    def total(self, terms: dict[str, Any], given: Any = None) -> Any:
        """What backward() is called on."""
        added = [terms[name] for name in self.add if isinstance(terms.get(name), torch.Tensor)]
        return sum(added, self._total_of(terms, given))

    def _total_of(self, terms: dict[str, Any], given: Any) -> Any:
        """The user's total, the one the terms came with, or the weighted sum."""
        if self._total is not None:
            return self._total(terms)
        if given is not None:
            return given
        weights = self.weights
        if wrong := next((name for name, term in terms.items() if not isinstance(term, torch.Tensor | Number)), None):
            raise ProgramError(f"the loss term '{wrong}' is a {type(terms[wrong]).__name__}, not a tensor")
        parts = [terms[name] * weights[name] if weights.get(name, 1.0) != 1.0 else terms[name] for name in terms]
        return functools.reduce(lambda a, b: a + b, parts) if parts else None

    def objective(self, wrapper: nn.Module, batch: Any) -> torch.Tensor:
        """The total loss of one batch."""
        with self.autocast():
            outputs = self.forward(wrapper, batch)
            return self.total(*self.terms(outputs, batch))

    @property
    def weights(self) -> dict[str, float]:
        """The weights that the YAML gives."""
        terms = self.spec.loss.terms
        if not isinstance(terms, dict) or is_node(terms):
            return {}
        return {name: float(node["weight"]) for name, node in terms.items() if isinstance(node, dict) and "weight" in node}

    def step(self, wrapper: nn.Module, batch: Any, optimizer: torch.optim.Optimizer) -> Any:
        if self.lightning is not None:
            return self.lightning.manual_step(wrapper, batch)
        return self._step(wrapper, batch, optimizer.given if isinstance(optimizer, Optimizers) else optimizer)

    # ------------------------------------------------------------------ terms

    def _bind_terms(self, terms: Any) -> Callable:
        if is_node(terms):
            call = self._loss(terms, "loss.terms")
            return lambda outputs, batch: named_terms(call(outputs, batch), "loss.terms")
        if isinstance(terms, dict):
            calls = {name: self._bind_term(node, f"loss.terms.{name}") for name, node in terms.items()}
            return lambda outputs, batch: ({name: call(outputs, batch) for name, call in calls.items()}, None)
        path = terms or "output.loss"
        return lambda outputs, batch: named_terms(
            resolve(path, {"output": outputs, "batch": batch}, "loss.terms"), "loss.terms", path.split(".")[-1])

    def _loss(self, node: Any, where: str) -> Callable:
        self._losses.append(bound(node, where))
        return self._losses[-1]

    def _bind_term(self, node: Any, where: str) -> Callable:
        if isinstance(node, str):
            return lambda outputs, batch: resolve(node, {"output": outputs, "batch": batch}, where)
        own = {k: v for k, v in node.items() if k not in ("args", "kwargs", "weight")}
        if not is_node(own):            # {path: output.aux, weight: 0.3}
            return self._bind_term(own["path"], where)
        call = self._loss(own, where)

        def term(outputs: Any, batch: Any) -> Any:
            roots = {"output": outputs, "batch": batch}
            positional = [_argument(a, roots, where) for a in node.get("args", ["output", "batch"])]
            return call(*positional, **{k: _argument(a, roots, where) for k, a in node.get("kwargs", {}).items()})
        return term


def _argument(value: Any, roots: dict[str, Any], where: str) -> Any:
    is_path = isinstance(value, str) and value.split(".")[0] in roots
    return resolve(value, roots, f"{where}.args") if is_path else value


def named_terms(value: Any, where: str, name: str = "loss") -> tuple[dict[str, Any], Any]:
    """A scalar, a mapping, or (total, mapping) as terms by name and the total that came with them."""
    if isinstance(value, torch.Tensor):
        return {"loss" if name == "output" else name: value}, None
    if isinstance(value, tuple) and len(value) == 2 and hasattr(value[1], "keys"):
        return named_terms(value[1], where)[0], value[0]
    if hasattr(value, "keys"):
        return {str(key): value[key] for key in value.keys() if isinstance(value[key], torch.Tensor)}, None  # noqa: SIM118
    raise SpecError(f"gave a {type(value).__name__}", where=where, hint="a scalar tensor, a mapping of them, or (total, mapping)")


def _refuse_meta(model: nn.Module) -> None:
    if empty := [name for name, p in model.named_parameters() if p.is_meta]:
        raise ProgramError(f"{len(empty)} parameters are on the meta device ({', '.join(empty[:2])}, ...) and hold no values; "
                           "model.to_empty() and an initialisation give them some, run.engine=simulate needs none")


def enter_mode(model: nn.Module, training: bool) -> None:
    """As a loop's ``model.train()``, but for frozen parts of a model in training that its factory has put into eval mode."""
    frozen = [m for m in model.modules() if not m.training and _is_frozen(m)] if training and model.training else []
    kept = [part for module in frozen for part in module.modules() if not part.training]
    model.train(training)
    for part in kept:
        part.training = False


def _is_frozen(module: nn.Module) -> bool:
    """Whether it has parameters, and trains none of them."""
    parameters = list(module.parameters())
    return bool(parameters) and not any(p.requires_grad for p in parameters)


def assign(model: nn.Module, path: str, value: Any) -> None:
    """Set an attribute of the model by dotted path."""
    owner, _, name = path.rpartition(".")
    target = resolve(f"model.{owner}" if owner else "model", {"model": model}, f"set.{path}")
    if not hasattr(target, name):
        raise SpecError(f"{type(target).__name__} has no '{name}'", where=f"set.{path}")
    setattr(target, name, value)
