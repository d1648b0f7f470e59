"""What the user's code does to DDP while a step runs: events, each with the user's line.

Everything is patched only while a scenario runs and put back afterwards. A function is patched where torch itself
looks it up (``torch.autograd.backward``, methods of classes), so that names that the user imported earlier
(``from torch.nn.utils import clip_grad_norm_``) are seen too.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ddplint.evidence import Place
from ddplint.record.activations import Activations
from ddplint.record.branches import untraced
from ddplint.record.source import frame_place, stack, user_place

COLLECTIVES = ("allreduce", "allreduce_coalesced", "broadcast", "allgather", "_allgather_base", "allgather_coalesced",
               "allgather_into_tensor_coalesced", "gather", "scatter", "reduce", "reduce_scatter", "_reduce_scatter_base",
               "alltoall", "alltoall_base", "barrier", "send", "recv")


class Watch:
    """Turns calls into events: ``emit(kind, detail, place)``; kinds are those of evidence.EVENT_KINDS."""

    def __init__(self, model: nn.Module, emit: Callable[[str, str, Place | None], None]):
        self.model, self.emit = model, emit
        self.wrapper: DistributedDataParallel | None = None
        self.names = {id(module): name for name, module in model.named_modules()}
        self.parameter_names = {id(p): name for name, p in model.named_parameters()}
        self.calls: dict[str, int] = {}
        self.running: list[nn.Module] = []
        """The modules whose forward runs now, outermost first; after an exception, those that it left."""
        self.in_forward = False
        self.backward_depth = 0
        self.synchronised = True
        """Whether the last wrapped forward armed DDP for a reduction."""
        self.broadcast = True
        """Whether DDP broadcast the buffers at the start of this wrapped forward."""
        self.joined = False
        self.steps_made = 0
        """How often optimizers have stepped."""
        self.cleared: Place | None = None
        """Where zero_grad() was called since the last backward."""
        self.on_backward: Callable[[Any], None] = lambda roots: None
        self.on_backward_end: Callable[[bool], None] = lambda ended: None
        """Called after it, with whether it came to its end."""
        self.on_forward_end: Callable[[Any], None] = lambda outputs: None
        self.on_entry: Callable[[], None] = lambda: None
        """Called when DDP enters the wrapped module: buffers are broadcast by then."""
        self.on_optimizer_step: Callable[[torch.optim.Optimizer], None] = lambda optimizer: None
        self.shared: set[int] = set()
        self.activations: Activations | None = None
        self.on_module: Callable[[nn.Module, str, Any], None] = lambda module, parent, output: None
        """Called after each module in ``shared`` (by id), with the name of the module that called it."""
        self.owners: set[int] = set()
        self.on_output: Callable[[str, Any], None] = lambda name, output: None
        """Called after each module in ``owners`` (by id)."""

    @contextlib.contextmanager
    def active(self) -> Iterator["Watch"]:
        """Patch for the time of the block."""
        with contextlib.ExitStack() as patches:
            self._patches = patches
            self._watch_modules()
            wraps = type(self.wrapper)
            self._around(wraps if "forward" in vars(wraps) else DistributedDataParallel, "forward", self._forward)
            self._around(torch.autograd, "backward", self._backward)
            self._before(torch.autograd, "grad", lambda *a, **k: self._say("grad"))
            self._before(DistributedDataParallel, "no_sync", lambda ddp, *a, **k: self._say("no-sync"))
            self._before(DistributedDataParallel, "join", self._join)
            self._watch_changes()
            self._watch_clipping()
            self._watch_optimizers()
            self._watch_checkpoints()
            for name in COLLECTIVES:
                if hasattr(dist.ProcessGroup, name):
                    self._before(dist.ProcessGroup, name, functools.partial(self._collective, name))
            yield self

    # ------------------------------------------------------------------ patching

    def _around(self, owner: Any, name: str, around: Callable) -> None:
        """Replace ``owner.name`` by ``around(original, *args, **kwargs)`` until the block ends."""
        original, own = getattr(owner, name), name in vars(owner)

        @functools.wraps(original)
        def patched(*args, **kwargs):
            return around(original, *args, **kwargs)

        raw = vars(owner).get(name)
        setattr(owner, name, staticmethod(patched) if isinstance(raw, staticmethod) else patched)
        self._patches.callback(setattr, owner, name, raw) if own else self._patches.callback(delattr, owner, name)

    def _before(self, owner: Any, name: str, before: Callable) -> None:
        def around(original, *args, **kwargs):
            before(*args, **kwargs)
            return original(*args, **kwargs)
        self._around(owner, name, around)

    def _say(self, kind: str, detail: str = "", place: Place | None = None) -> None:
        self.emit(kind, detail, place or user_place())

    # ------------------------------------------------------------------ modules

    def _watch_modules(self) -> None:
        pre = nn.modules.module.register_module_forward_pre_hook(untraced(self._enter))
        post = nn.modules.module.register_module_forward_hook(untraced(self._leave), always_call=False)
        self._patches.callback(pre.remove)
        self._patches.callback(post.remove)

    def _enter(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():       # constant while dynamo traces: it leaves the rest of the hook out
            return
        name = self.names.get(id(module))
        if name is None:
            return
        if not self.running and not self.in_forward and not self.backward_depth and torch.is_grad_enabled():
            self._say("inner-forward", name, self._outside_place(module))
        if module is self.model and self.in_forward and not self.running:
            self.on_entry()
        if self.activations is not None:
            self.activations.enter(module, name, args)
        self.running.append(module)
        self.calls[name] = self.calls.get(name, 0) + 1

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self.running and module in self.running:
            while self.running.pop() is not module:
                pass
        if self.activations is not None:
            self.activations.leave(module, output)
        if id(module) in self.shared:
            self.on_module(module, self.names[id(self.running[-1])] if self.running else "", output)
        if id(module) in self.owners:
            self.on_output(self.names.get(id(module), ""), output)

    def _outside_place(self, module: nn.Module) -> Place | None:
        """The innermost user frame that is not a method of the model itself."""
        for frame in stack():
            owner = frame.f_locals.get("self")
            if owner is not module and not (isinstance(owner, nn.Module) and id(owner) in self.names):
                return frame_place(frame)
        return user_place()

    # ------------------------------------------------------------------ DDP and autograd

    def _forward(self, original: Callable, ddp: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
        if ddp is not self.wrapper:
            return original(ddp, *args, **kwargs)
        self.synchronised, self.broadcast = ddp.require_backward_grad_sync, ddp.will_sync_module_buffers()
        self._say("forward", "no-grad" if not torch.is_grad_enabled() else "" if self.synchronised else "no-sync")
        self.in_forward = True
        try:
            outputs = original(ddp, *args, **kwargs)
        finally:
            self.in_forward = False
        self.on_forward_end(outputs)
        return outputs

    def _backward(self, original: Callable, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if self.backward_depth == 0:
            self._say("backward", "" if self.synchronised else "no-sync")
            self.on_backward(tensors)
            self.cleared = None
        self.backward_depth += 1
        ended = False
        try:
            original(tensors, *args, **kwargs)
            ended = True
        finally:
            self.backward_depth -= 1
            if self.backward_depth == 0:
                self.on_backward_end(ended)

    def _join(self, ddp: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        self.joined = True
        self._say("join")

    def _collective(self, name: str, *args: Any, **kwargs: Any) -> None:
        place = user_place()
        if place is not None and (self.running or not self.in_forward):     # else DDP's own: buffers before the forward
            self._say("collective", name.strip("_"), place)

    # ------------------------------------------------------------------ changes, clipping, checkpoints

    def _watch_changes(self) -> None:
        def module_changed(kind: str, module: nn.Module, *args: Any, **kwargs: Any) -> None:
            name = "" if module is self.wrapper else self.names.get(id(module))
            if name is not None and (kind == "requires-grad" or not self.running):
                self._say(kind, name)

        def tensor_changed(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
            if id(tensor) in self.parameter_names:
                self._say("requires-grad", self.parameter_names[id(tensor)])

        self._before(nn.Module, "requires_grad_", functools.partial(module_changed, "requires-grad"))
        self._before(nn.Module, "_apply", functools.partial(module_changed, "apply"))
        self._before(torch.Tensor, "requires_grad_", tensor_changed)
        # ``p.requires_grad = False`` is a C descriptor's; a property of the subclass stands before it.
        raw = torch._C.TensorBase.requires_grad

        def assigned(parameter: nn.Parameter, value: bool) -> None:
            tensor_changed(parameter)
            raw.__set__(parameter, value)
        nn.Parameter.requires_grad = property(raw.__get__, assigned)
        self._patches.callback(delattr, nn.Parameter, "requires_grad")

    def _watch_clipping(self) -> None:
        def clipped(*args: Any, **kwargs: Any) -> None:
            self._say("clip", "" if self.synchronised else "no-sync")

        # clip_grad_norm_ looks the first up at each call, however the user imported clip_grad_norm_ itself.
        for owner, name in ((torch.nn.utils.clip_grad, "_clip_grads_with_norm_"), (torch.nn.utils, "clip_grad_value_")):
            if hasattr(owner, name):
                self._before(owner, name, clipped)

    def _watch_checkpoints(self) -> None:
        from torch.utils import checkpoint
        self._before(checkpoint.CheckpointFunction, "apply", lambda *a, **k: self._say("checkpoint", "reentrant"))
        name = "_checkpoint_without_reentrant_generator"
        if hasattr(checkpoint, name):
            self._before(checkpoint, name, lambda *a, **k: self._say("checkpoint", "non-reentrant"))

    # ------------------------------------------------------------------ optimizers

    def _watch_optimizers(self) -> None:
        handle = register_optimizer_step_pre_hook(self._optimizer_steps)
        self._patches.callback(handle.remove)
        for owner in (torch.optim.Optimizer, nn.Module):
            self._before(owner, "zero_grad", self._clear)
        self._around(torch.amp.GradScaler, "step", self._scaled_step)

    def _optimizer_steps(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._say("optimizer-step")
        self.steps_made += 1
        self.on_optimizer_step(optimizer)

    def _scaled_step(self, original: Callable, scaler: Any, *args: Any, **kwargs: Any) -> Any:
        made = self.steps_made
        result = original(scaler, *args, **kwargs)
        if self.steps_made == made:
            self._say("skipped")
        return result

    def _clear(self, *args: Any, **kwargs: Any) -> None:
        self.cleared = user_place()
