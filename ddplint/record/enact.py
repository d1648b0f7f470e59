"""One step of the user's program, played under the tracer, into a Replay."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ddplint.record.causes.updates import Updates
from ddplint.record.frames import Frames
from ddplint.record.history import Op, frame_site, here
from ddplint.record.leaves import leaves
from ddplint.record.program import Program
from ddplint.record.replay import Replay, reaches, values_of
from ddplint.record.source import stack
from ddplint.record.trace import Tracer


class Enactment:
    """Runs steps of a wrapped model. ``traced`` says whether a step is looked at, or only has to happen."""

    def __init__(self, program: Program, wrapper: nn.Module, optimizer: Any, tracer: Tracer, frames: Frames,
                 updates: Updates | None = None):
        self.updates = updates
        self.program, self.wrapper, self.optimizer, self.tracer, self.frames = program, wrapper, optimizer, tracer, frames
        self.names = {id(module): name for name, module in program.model.named_modules()}
        self.called: set[str] = set()
        self.running: list[str] = []
        self.fired = 0
        self._hooked: set[str] = set()

    # ------------------------------------------------------------------ the step

    def run(self, replay: Replay, traced: bool) -> None:
        """What the step raises passes through; the replay then holds what was seen until then."""
        self.called, self.fired = set(), 0
        self.running.clear()
        self._watch_firing(replay)
        if replay.request.uses:
            self.tracer.watchers.append(self.note_use)
        self.leaf_bits = {id(p): replay.bit(n) for n, p in replay.parameters.items() if n in self.tracer.suspects}
        try:
            self.program.prepare(replay.step)
            if self.program.custom_step:
                self._custom_step(replay, traced)
                return
            self.optimizer.zero_grad(set_to_none=True)
            parts = self.program.accumulate
            for part in range(parts):
                self._forward_backward(replay, replay.step * parts + part, parts, traced)
        finally:
            fired = self.fired | self._unhooked(replay)
            for part in (replay, *replay.parts):
                part.called, part.fired = self.called, fired

    def _forward_backward(self, replay: Replay, item: int, parts: int, traced: bool) -> None:
        program = self.program
        batch = program.batch(item)
        with program.autocast():
            with self._phase("forward", traced):
                outputs = program.forward(self.wrapper, batch)
            self._note_outputs(replay, outputs, traced)
            with self._phase("terms", traced):
                terms, given = program.terms(outputs, batch)
            self._note_terms(replay, terms, traced)
            with self._phase("total", traced):
                total = program.total(terms, given)
        self._note_total(replay, total, traced)
        (total if parts == 1 else total / parts).backward()
        replay.last_backward = self.tracer.tick()

    def _custom_step(self, replay: Replay, traced: bool) -> None:
        """The user's loop: outputs are what the wrapper returns, totals are what backward() is called on."""
        def backward(roots: list) -> None:
            replay.backward = here()
            if replay.spent is not None:
                replay.spent.backward_begins(roots)
            replay.last_backward = self.tracer.tick()
            replay.total_reach, replay.total_graph = 0, False
            replay.frozen = {name: self.tracer.frozen.get(id(p)) for name, p in replay.parameters.items() if not p.requires_grad}
            for root in roots:
                self._note_total(replay, root, traced)
            replay.keep_part()

        def returned(module, args, outputs) -> None:
            replay.forward_stack = replay.forward_stack or [frame_site(frame) for frame in stack()]
            self._note_outputs(replay, outputs, traced)
        self.tracer.on_backward = backward
        hook = self.wrapper.register_forward_hook(returned)
        try:
            with self._phase("step", traced):
                self.program.step(self.wrapper, self.program.batch(replay.step), self.optimizer)
        finally:
            hook.remove()

    def update(self) -> None:
        if not self.program.custom_step:
            self.optimizer.step()

    # ------------------------------------------------------------------ what is noted

    def _note_outputs(self, replay: Replay, outputs: Any, traced: bool) -> None:
        found = {path: tensor for path, tensor, _ in leaves(outputs)} if traced else {}
        for (path, tensor), (bits, _) in zip(found.items(), reaches(list(found.values()), self.leaf_bits), strict=True):
            replay.outputs[path] = self.tracer.mark(f"output:{path}", tensor)
            replay.output_reach[path] = bits

    def _note_terms(self, replay: Replay, terms: dict[str, Any], traced: bool) -> None:
        found = {name: term for name, term in terms.items() if isinstance(term, torch.Tensor)} if traced else {}
        for (name, term), (bits, graph) in zip(found.items(), reaches(list(found.values()), self.leaf_bits), strict=True):
            replay.terms[name] = self.tracer.mark(f"term:{name}", term)
            replay.term_reach[name], replay.term_graph[name] = bits, graph
            replay.term_ids[name] = id(term)
            self.frames.watched[id(term)] = name

    def _note_total(self, replay: Replay, total: Any, traced: bool) -> None:
        if traced and isinstance(total, torch.Tensor):
            bits, graph = reaches([total], self.leaf_bits)[0]
            replay.total = values_of(self.tracer, total)
            replay.total_reach |= bits
            replay.total_graph |= graph

    # ------------------------------------------------------------------ who fires, who is called

    def _watch_firing(self, replay: Replay) -> None:
        """Hooks on the suspects that need a gradient by now (one may be unfrozen later)."""
        for name, parameter in replay.parameters.items():
            if name in self.tracer.suspects and parameter.requires_grad and name not in self._hooked:
                self._hooked.add(name)
                parameter.register_post_accumulate_grad_hook(functools.partial(self._fire, replay.bit(name)))

    def _fire(self, bit: int, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:      # a custom Function may hand back none, and the hook runs all the same
            self.fired |= bit

    def _unhooked(self, replay: Replay) -> int:
        """Suspects that were unfrozen within this step and got a gradient."""
        return replay.bits(name for name, p in replay.parameters.items() if name not in self._hooked and p.grad is not None)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around all steps: notes called modules, and keeps what optimizers do out of the data flow."""
        phases: list[str] = []
        hooks = [nn.modules.module.register_module_forward_pre_hook(self._entering),
                 nn.modules.module.register_module_forward_hook(self._leaving, always_call=True),
                 register_optimizer_step_pre_hook(lambda *_: phases.append(self.tracer.pause())),
                 register_optimizer_step_post_hook(lambda *_: self.tracer.start(phases.pop()))]
        if self.updates is not None:
            hooks += [register_optimizer_step_pre_hook(self.updates.before), register_optimizer_step_post_hook(self.updates.after)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _entering(self, module: nn.Module, args: Any) -> None:
        if id(module) in self.names:
            self.running.append(self.names[id(module)])
            if self.tracer.phase:
                self.called.add(self.running[-1])

    def _leaving(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.running and self.names.get(id(module)) == self.running[-1]:
            self.running.pop()

    def note_use(self, op: Op, inputs: list, results: list) -> None:
        """A watcher of the tracer: what a module computes from a shared parameter becomes a suspect of its own."""
        for value in op.inputs:
            bit = self.tracer.suspects.get(f"use:{value.name}:{self.running[-1]}") if value.name and self.running else None
            for result in op.results if bit is not None else ():
                result.data |= 1 << bit
                result.live |= 1 << bit if result.grad else 0

    def _phase(self, name: str, traced: bool) -> contextlib.AbstractContextManager:
        return phase(self.tracer, self.frames, name) if traced else contextlib.nullcontext()


@contextlib.contextmanager
def phase(tracer: Tracer | None, frames: Frames, name: str) -> Iterator[None]:
    """Tracer (where there is one) and frames are active, and in the same phase, for the time of the block."""
    frames.phase = name
    if tracer is not None:
        tracer.start(name)
    try:
        yield
    finally:
        frames.phase = ""
        if tracer is not None:
            tracer.pause()
