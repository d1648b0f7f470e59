"""A LightningModule as the program: what Lightning's Trainer does with one under DDP, without a Trainer.

As in Lightning's DDPStrategy, DDP is built around the module itself, so that parameters bear the user's names, and
``training_step`` runs inside DDP's forward. Lightning is never imported: a model is one if its class says so.
"""

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddplint.errors import SpecError


def is_lightning(model: nn.Module) -> bool:
    return any(kind.__name__ == "LightningModule" for kind in type(model).__mro__) and hasattr(model, "training_step")


class LightningRun:
    """The phases of a step as Lightning runs them: batch hooks, training_step inside DDP's forward, its loss."""

    def __init__(self, model: nn.Module, rank: int, world_size: int):
        self.model, self.item, self.returned = model, 0, {}
        self.trainer = Trainer(model, rank, world_size)
        self._started = False
        for module in model.modules():
            if is_lightning(module):
                module._trainer, module.log, module.log_dict = self.trainer, _quiet, _quiet
        model.setup("fit")
        model.configure_model()

    @property
    def manual(self) -> bool:
        """Whether training_step calls backward() and steps the optimizers itself."""
        return not self.model.automatic_optimization

    def make_optimizer(self) -> Any:
        """The optimizers of configure_optimizers(), in any of the forms that Lightning takes."""
        made, schedulers = _split(self.model.configure_optimizers())
        if len(made) > 1 and not self.manual:
            raise SpecError(f"configure_optimizers() gives {len(made)} optimizers", where="model",
                            hint="Lightning takes several only where self.automatic_optimization is False")
        self.trainer.optimizers = self.trainer.strategy._lightning_optimizers = made
        self.trainer.lr_scheduler_configs = [SimpleNamespace(scheduler=s) for s in schedulers]
        return made[0] if len(made) == 1 else made

    def batch(self, batch: Any, item: int) -> Any:
        if not self._started:
            self._started = True
            for hook in ("on_fit_start", "on_train_start", "on_train_epoch_start"):
                getattr(self.model, hook)()
        self.item = self.trainer.global_step = item
        batch = self.model.on_after_batch_transfer(self.model.on_before_batch_transfer(batch, 0), 0)
        self.model.on_train_batch_start(batch, item)
        return batch

    def forward(self, wrapper: nn.Module, batch: Any) -> dict[str, Any]:
        """What training_step returned beside its losses, and, under ``forward``, what ``self(...)`` gave inside of it."""
        returned, inside = self._training_step(wrapper, batch)
        self.returned = returned if hasattr(returned, "keys") else {"loss": returned}
        outputs = {key: value for key, value in self.returned.items() if not _is_scalar(value) and key != "loss"}
        for value in inside:
            outputs.setdefault("forward", Inside(value))
        return outputs

    def terms(self, outputs: Any, batch: Any) -> tuple[dict[str, Any], Any]:
        """Every scalar that training_step returned; the total is its loss."""
        if "loss" not in self.returned:
            raise SpecError("training_step returned a mapping without 'loss'", where="model",
                            hint=f"it has {', '.join(map(str, self.returned))}")
        loss = self.returned["loss"]
        return {key: value for key, value in self.returned.items() if _is_scalar(value) or key == "loss"}, loss

    def manual_step(self, wrapper: nn.Module, batch: Any) -> None:
        """Manual optimisation: DDP's reducer is prepared at each manual_backward(), as Lightning does it."""
        self.trainer.strategy.wrapper = wrapper
        self._training_step(wrapper, batch)

    def _training_step(self, wrapper: nn.Module, batch: Any) -> tuple[Any, list]:
        """DDP calls the module's forward; for this one call that is training_step, in which it is the user's again."""
        model, inside = self.model, []
        own = vars(model).get("forward")

        def training_step(*args: Any) -> Any:
            restore()
            hook = model.register_forward_hook(lambda module, args, outputs: inside.append(outputs))
            try:
                return model.training_step(*args)
            finally:
                hook.remove()
                if self.manual and wrapper is not model:
                    wrapper.require_backward_grad_sync = False      # or DDP would wait for a backward after this forward

        def restore() -> None:
            vars(model).pop("forward", None)
            if own is not None:
                model.forward = own
        model.forward = training_step
        try:
            return wrapper(*self._arguments(batch)), inside[-1:]
        finally:
            restore()
            if self.manual and wrapper is not model:
                wrapper.require_backward_grad_sync = True

    def _arguments(self, batch: Any) -> tuple:
        taken = [p for p in inspect.signature(self.model.training_step).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        return (batch, self.item, 0)[:min(len(taken), 3)] if not any(p.kind is p.VAR_POSITIONAL for p in taken) \
            else (batch, self.item)


class Inside:
    """Outputs that stay inside of training_step: DDP does not see what it does not return."""

    def __init__(self, outputs: Any):
        if isinstance(outputs, torch.Tensor):
            outputs = {"output": outputs}
        elif isinstance(outputs, list | tuple):
            outputs = dict(enumerate(outputs))
        self.__dict__.update({str(key): value for key, value in outputs.items()} if hasattr(outputs, "items")
                             else vars(outputs) if hasattr(outputs, "__dict__") else {})


class Trainer:
    """What a LightningModule may ask its trainer for, where there is none."""

    def __init__(self, model: nn.Module, rank: int, world_size: int):
        self.model = self.lightning_module = model
        self.strategy = Strategy()
        self.optimizers, self.lr_scheduler_configs, self.loggers, self.callbacks = [], [], [], []
        self.current_epoch = self.global_step = 0
        self.max_epochs, self.max_steps, self.estimated_stepping_batches, self.num_training_batches = 1, -1, 1000, 1000
        self.global_rank, self.local_rank, self.world_size = rank, rank, world_size
        self.num_devices, self.num_nodes, self.accumulate_grad_batches = world_size, 1, 1
        self.is_global_zero, self.training, self.barebones = rank == 0, True, False
        self.sanity_checking = self.validating = self.testing = self.predicting = self.fast_dev_run = False
        self.logger = self.datamodule = self.train_dataloader = self.progress_bar_callback = None
        self.gradient_clip_val = self.gradient_clip_algorithm = None
        self.precision_plugin = self.strategy

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the model asks for trainer.{name}, which ddplint does not stand in for: it runs "
                             "training_step without a Trainer")


class Strategy:
    """The parts of Lightning's DDPStrategy that a LightningModule's own methods call."""

    def __init__(self) -> None:
        self.wrapper: nn.Module | None = None
        self._lightning_optimizers: list[torch.optim.Optimizer] = []

    def backward(self, loss: torch.Tensor, optimizer: Any = None, *args: Any, **kwargs: Any) -> None:
        prepare_for_backward(self.wrapper, loss)
        loss.backward(*args, **kwargs)

    def clip_gradients(self, optimizer: Any, value: float, algorithm: Any = "norm") -> None:
        clip = nn.utils.clip_grad_value_ if str(algorithm).endswith("value") else nn.utils.clip_grad_norm_
        if value:
            clip([p for group in optimizer.param_groups for p in group["params"]], value)

    def reduce(self, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor

    def all_gather(self, tensor: torch.Tensor, group: Any = None, sync_grads: bool = False) -> torch.Tensor:
        """[...] on each rank to [world_size, ...] on all, with gradients where ``sync_grads`` asks for them."""
        import torch.distributed.nn.functional as differentiable
        if sync_grads:
            return torch.stack(differentiable.all_gather(tensor))
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, tensor.detach().contiguous())
        return torch.stack(parts)

    def barrier(self, *args: Any, **kwargs: Any) -> None:
        """Each rank goes on by itself."""


def prepare_for_backward(wrapper: Any, loss: torch.Tensor) -> None:
    """Lightning's own: what DDP.forward does at its end (lightning/pytorch/overrides/distributed.py, 2.6)."""
    if type(wrapper) is not DistributedDataParallel or not torch.is_grad_enabled():
        return              # a rank that is run alone: nothing is reduced
    from torch.nn.parallel.distributed import _find_tensors
    wrapper.require_forward_param_sync = True
    searched = wrapper.find_unused_parameters and not wrapper.static_graph
    wrapper.reducer._rebuild_buckets()
    wrapper.reducer.prepare_for_backward(list(_find_tensors(loss)) if searched else [])


class Optimizers:
    """Several optimizers, as the user made them (``given``), looked at as one."""

    def __init__(self, given: Any):
        self.given = given
        held = list(_members(given)) or list(_members(list(getattr(given, "__dict__", {}).values())))
        self.members = list({id(member): member for member in held}.values())

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for member in self.members for group in member.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for member in self.members:
            member.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        for member in self.members:
            member.step()


def _members(given: Any) -> Iterator[torch.optim.Optimizer]:
    if hasattr(given, "param_groups"):
        yield given
    elif isinstance(given, dict):
        for item in given.values():
            yield from _members(item)
    elif isinstance(given, list | tuple):
        for item in given:
            yield from _members(item)


def _split(configured: Any) -> tuple[list, list]:
    """(optimizers, schedulers) of what configure_optimizers() returned."""
    if configured is None:
        return [], []
    if isinstance(configured, dict):
        configured = [configured]
    if isinstance(configured, list | tuple) and configured and all(isinstance(entry, dict) for entry in configured):
        return [entry["optimizer"] for entry in configured], \
            [_scheduler(entry["lr_scheduler"]) for entry in configured if "lr_scheduler" in entry]
    if isinstance(configured, list | tuple) and len(configured) == 2 and isinstance(configured[0], list | tuple):
        return list(configured[0]), [_scheduler(entry) for entry in configured[1]]
    return list(configured) if isinstance(configured, list | tuple) else [configured], []


def _scheduler(entry: Any) -> Any:
    return entry["scheduler"] if isinstance(entry, dict) else entry


def _is_scalar(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _quiet(*args: Any, **kwargs: Any) -> None:
    """In place of log() and log_dict(), which need a Trainer."""
