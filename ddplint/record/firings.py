"""What DDP counts: how often each parameter's gradient is complete after a wrapped forward, and why that may be twice.

Its own run ended at the first gradient that was. Alone, the step runs to its end.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ddplint.evidence import Cause
from ddplint.record.causes.guards import place_of
from ddplint.record.graph import OPAQUE, key_of, walk
from ddplint.record.history import Op, Site, here
from ddplint.record.leaves import leaves
from ddplint.record.replay import Replay


@dataclass
class Call:
    """A call of the wrapper that arms DDP for a reduction."""

    site: Site | None
    began: int
    ended: int
    """On the tracer's clock."""
    backwards: int
    """How many there had been before, in a loop of the user's own."""
    visible: set[int] = field(default_factory=set)
    """ids of the parameters behind the outputs that DDP finds."""
    hidden: dict[str, set[int]] = field(default_factory=dict)
    """Path of an output that DDP does not find -> the same."""
    checkpoint: bool = False
    """Whether a reentrant one stands between outputs and parameters."""


class Firings:
    """``search`` says whether DDP looks for unused parameters: it takes them for complete before backward begins."""

    def __init__(self, model: nn.Module, wrapper: nn.Module, search: bool):
        self.model, self.search = model, search
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        for name, parameter in self.named.items():
            parameter.register_post_accumulate_grad_hook(functools.partial(self._fire, name))
        wrapper.register_forward_pre_hook(self._entered)
        wrapper.register_forward_hook(self._left)
        self.twice: dict[str, int] = {}

    def begin_step(self, replay: Replay) -> None:
        self.replay, self.calls = replay, []
        self._counts: dict[str, int] = {}
        self.twice, self._round = {}, None
        self.backward: Site | None = None
        """The backward in which a gradient was complete for the second time, if it is not the first one after the forward."""

    def _entered(self, wrapper: nn.Module, args: Any) -> None:
        self._begun, self._site = self.replay.tracer.tick(), here()

    def _left(self, wrapper: nn.Module, args: Any, outputs: Any) -> None:
        if not torch.is_grad_enabled() or not getattr(wrapper, "require_backward_grad_sync", True):
            return
        call = Call(self._site, self._begun, self.replay.tracer.tick(), len(self.replay.parts))
        found = list(leaves(outputs))
        seen = walk(key_of(tensor) for _, tensor, _ in found)
        call.checkpoint = OPAQUE["CheckpointFunctionBackward"] in seen.opaque
        for i, (path, _, visible) in enumerate(found):
            behind = call.visible if visible else call.hidden.setdefault(path, set())
            behind.update(p for p, roots in seen.leaves.items() if roots >> i & 1)
        self.calls.append(call)
        self._counts = dict.fromkeys(self._unfound(call), 1) if self.search else {}

    def _unfound(self, call: Call) -> list[str]:
        return [name for name, p in self.named.items() if id(p) not in call.visible]

    def _fire(self, name: str, parameter: nn.Parameter) -> None:
        self._counts[name] = count = self._counts.get(name, 0) + 1
        at = len(self.calls), len(self.replay.parts)
        if count > 1 and self._round in (None, at):     # DDP raises in this backward
            self._round, self.twice[name] = at, count
            if self.calls and at[1] - self.calls[-1].backwards > 1:
                self.backward = self.replay.backward

    # ------------------------------------------------------------------ why

    def why(self) -> Cause | None:
        """For the first that was complete twice; ``twice`` then holds those alone that have the same cause."""
        if not self.twice or not self.calls:
            return None
        if self.backward is not None:
            return Cause("several-backwards", "backward() runs again after one wrapped forward, and reaches it again", self.backward.place)
        found = {name: self._why_unfound(name) for name in self.twice} if self.search else {}
        cause = next(iter(found.values()), None)
        if cause is not None:
            self.twice = {name: self.twice[name] for name, other in found.items() if other is not None and other.kind == cause.kind}
        return cause

    def _why_unfound(self, name: str) -> Cause | None:
        """Why the search after the last forward did not find a parameter that gets a gradient."""
        key, last = id(self.named[name]), self.calls[-1]
        if any(key in behind for behind in last.hidden.values()):
            told = ", ".join(f"'{path}'" for path in list(last.hidden)[:3])
            return Cause("hidden-output", f"DDP does not look into the object that is returned with {told}, so "
                         "find_unused_parameters=True books what that depends on as unused", self._returned(), outputs=list(last.hidden))
        if any(key in call.visible for call in self._before(last)):
            return Cause("several-forwards", "this forward runs before the backward of an earlier one and does not reach it, so "
                         "find_unused_parameters=True books it as unused", place_of(last.site))
        read = next((op for op in self.replay.tracer.ops if self._reads_outside(op, name)), None)
        if read is not None:
            return Cause("read-outside", "it is read outside of the wrapped forward, which does not reach it, so "
                         "find_unused_parameters=True books it as unused", place_of(read.site), read.name)
        if last.checkpoint:
            return Cause("checkpoint", "the search of find_unused_parameters=True does not look into a reentrant checkpoint, and "
                         "books what it holds as unused")
        return None

    def _before(self, last: Call) -> list[Call]:
        """The other calls since the last backward."""
        return [call for call in self.calls[:-1] if call.backwards == last.backwards]

    def _reads_outside(self, op: Op, name: str) -> bool:
        reads = any(value.name == name for value in op.inputs) and any(value.grad for value in op.results)
        return reads and not any(call.began < op.order < call.ended for call in self.calls)

    def _returned(self) -> Any:
        """The line of the model's forward that returned the outputs."""
        code = getattr(type(self.model).forward, "__code__", None)
        frames = self.replay.frames.seen.get((id(self.model), code), [])
        return Site(code, 0, frames[-1].last).place if frames and frames[-1].last else None
