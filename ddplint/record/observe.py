"""One scenario on one rank, under real DDP: run the steps, stream what is seen.

Messages to the parent are plain data: ``send(kind, body)`` with the kinds phase, model, event, graph, step, strays,
changes, ties, optimizer, signatures, size, notes, failure and spec-error. They are sent as soon as they are known,
because the decisive step often raises or hangs in backward.
"""

import contextlib
import copy
import dataclasses
import math
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from ddplint.errors import SpecError
from ddplint.evidence import Event, Failure, Place, StepSeen
from ddplint.record.activations import Activations
from ddplint.record.batches import ProgramError
from ddplint.record.branches import Branches
from ddplint.record.counts import Counts
from ddplint.record.gradients import Gradients
from ddplint.record.program import Program
from ddplint.record.rank import describe
from ddplint.record.remedy import AS_IT_IS, Remedy
from ddplint.record.signature import signatures
from ddplint.record.snapshot import Since, optimizer_coverage, snapshot
from ddplint.record.source import adopt, first_error, is_ours, set_folder, user_place
from ddplint.record.structure import Structure
from ddplint.record.ties import ties_watched
from ddplint.record.watch import Watch
from ddplint.record.wrap import ddp_keywords, optimizer_places, wrap
from ddplint.spec import Spec

CHANGES = ("requires-grad", "apply")
Send = Callable[[str, Any], None]


def run_scenario(spec: Spec, scenario: str, rank: int, world_size: int, device: torch.device, send: Send,
                 remedy: Remedy = AS_IT_IS) -> bool:
    """Run the scenario on the default process group; True where this rank is still fit for another one."""
    set_folder(spec.folder)
    with remedy.applied():
        return Observation(remedy.program(spec, scenario, rank, world_size, device), send).run()


class Observation:
    wrapper_type = DistributedDataParallel
    counts_type = Counts

    def __init__(self, program: Program, send: Send):
        self.program, self.spec, self.send = program, program.spec, send
        self.phase, self.step = "import", None
        self.watch: Watch | None = None
        self.graphs: list = []

    # ------------------------------------------------------------------ the scenario

    def run(self) -> bool:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            try:
                self._build()
                with self.watch.active():
                    self._make_optimizer(self.model)
                    for step in range(self.spec.run.steps):
                        self._run_step(step)
                return True
            except SpecError as error:
                self.send("spec-error", str(error))
            except KeyboardInterrupt:
                raise
            except BaseException as last:  # noqa: BLE001 (SystemExit and all: what the user's code does is evidence)
                error = first_error(last)
                if not isinstance(error, ProgramError) and is_ours(error):
                    self.send("internal-error", traceback.format_exc())
                else:
                    self.send("failure", self._failure(error))
            finally:
                self._close(caught)
        return False

    def _enter(self, phase: str, step: int | None = None) -> None:
        self.phase, self.step = phase, step
        self.send("phase", (phase, step))

    def _build(self) -> None:
        self._enter("import")
        self.program.resolve()
        self._enter("build")
        with ties_watched() as broken_ties:
            model = self.program.build()
        adopt(model)
        self.model, self.watch = model, Watch(model, self._event)
        self.send("model", snapshot(model))
        self.send("ties", broken_ties(model))
        self._enter("wrap")
        self.send("ddp-keywords", ddp_keywords())
        self.wrapper = self.watch.wrapper = wrap(model, self.spec.ddp, self.program.device, self.wrapper_type)
        self._send_signatures("values", None, [*model.named_parameters(), *model.named_buffers()])
        # What DDP holds is what the model is made of now: the optimizer's factory may change it.
        self.since, self.structure, self.branches = Since(model, self.program.outside), Structure(model), Branches(model)
        self.gradients = Gradients(model.named_parameters())
        self.gradients.on_local_end = self._local_end
        self.watch.on_backward, self.watch.on_backward_end = self._backward_begins, self._backward_ended
        self.watch.on_forward_end = self._forward_ended
        self.watch.on_entry, self.watch.on_optimizer_step = self._entered, self._optimizer_steps
        self.watch.activations = Activations(model)
        self.watch.on_module, self.watch.shared = self.structure.add_module, set(self.structure.shared)
        self.watch.on_output, self.watch.owners = self.structure.flows.add_output, self.structure.flows.owners

    def _make_optimizer(self, model: torch.nn.Module) -> None:
        with optimizer_places() as places:
            self.optimizer = self.program.make_optimizer(model)
        if self.optimizer.param_groups:
            self.send("optimizer", (optimizer_coverage(self.optimizer, model, self.program.outside()), next(iter(places.values()), None)))

    # ------------------------------------------------------------------ one step

    def _run_step(self, step: int) -> None:
        self.seen, self.stepped, self.entered, started = StepSeen(step), 0, 0, time.perf_counter()
        self.watch.calls.clear()
        self.structure.begin()
        self.gradients.begin_step()
        try:
            self.program.prepare(step)
            self._custom_step(step) if self.program.custom_step else self._declared_step(step)
            self._enter("done", step)
        finally:
            self.seen.phase, self.seen.seconds = self.phase, time.perf_counter() - started
            self._send_step()
        self._after_step(step)
        self.structure.release()

    def _declared_step(self, step: int) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.program.accumulate
        for part in range(parts):
            with contextlib.nullcontext() if part == parts - 1 else self.wrapper.no_sync():
                self._forward_backward(step, step * parts + part, parts)
        self._enter("optimizer", step)
        self.optimizer.step()

    def _forward_backward(self, step: int, item: int, parts: int) -> None:
        self._enter("batch", step)
        batch = self.program.batch(item)
        with self.program.autocast():
            self._enter("forward", step)
            with self.branches.watched():
                outputs = self.program.forward(self.wrapper, batch)
            self.structure.add_outputs(outputs)
            with self.branches.watched(), self.counts_type() as counts:
                self._enter("terms", step)
                terms, given = self.program.terms(outputs, batch)
                self._note_terms(terms, parts, counts)
                self._enter("total", step)
                total = self.program.total(terms, given)
        self._note_total(total)
        self.structure.close(terms, total)
        self._enter("backward", step)
        self._backward(total, parts)

    def _backward(self, total: Any, parts: int) -> None:
        if not isinstance(total, torch.Tensor):
            raise ProgramError(f"the total loss is a {type(total).__name__}, not a tensor: backward() cannot run")
        (total if parts == 1 else total / parts).backward()

    def _custom_step(self, step: int) -> None:
        self._enter("batch", step)
        batch = self.program.batch(step)
        self._enter("forward", step)
        with self.branches.watched():
            self.program.step(self.wrapper, batch, self.optimizer)

    # ------------------------------------------------------------------ what is noted

    def _note_terms(self, terms: dict[str, Any], parts: int, counts: Counts) -> None:
        for name, term in terms.items():
            if not isinstance(term, torch.Tensor):
                continue
            self.seen.values[name] = float(term.detach().sum())
            if (counted := counts.of(term)) is not None:
                self.seen.counts[name], self.structure.divided_at[name] = counted
            if term.requires_grad:
                def weigh(gradient: torch.Tensor, name: str = name) -> None:
                    self.seen.weights[name] = float(gradient.sum()) * parts
                term.register_hook(weigh)

    def _note_total(self, total: Any) -> None:
        tensor = isinstance(total, torch.Tensor)
        self.seen.total_differentiable = tensor and total.requires_grad
        if tensor:
            self.seen.total_shape = list(total.shape)
            self.seen.total = float(total.detach().sum())
            if not math.isfinite(self.seen.total):
                self.seen.nonfinite_outputs = self.structure.nonfinite_outputs()

    def _entered(self) -> None:
        """DDP has broadcast the buffers by now, save in a forward after one without gradients or under no_sync: the next one does."""
        if self.watch.broadcast or not self.wrapper.broadcast_buffers:
            self._send_signatures(f"buffers.{self.entered}", self.step, self.model.named_buffers())
        self.entered += 1

    def _forward_ended(self, outputs: Any) -> None:
        self.gradients.armed |= self.watch.synchronised and torch.is_grad_enabled()
        if self.program.custom_step:
            self.structure.add_outputs(outputs)
            self._send_step()           # the next collective may be the last thing that this rank does

    def _backward_begins(self, roots: Any) -> None:
        self.gradients.begin_backward()
        self.gradients.armed |= self.program.lightning is not None      # manual_backward() prepares DDP each time
        if not self.program.custom_step:
            return
        self._enter("backward", self.step)
        for root in [roots] if isinstance(roots, torch.Tensor) else list(roots):
            self._note_total(root)
            self.structure.close({}, root)

    def _backward_ended(self, to_its_end: bool) -> None:
        self.gradients.end_backward(self.watch.synchronised and (to_its_end or self.gradients.through))
        if self.program.custom_step and to_its_end:
            self._enter("forward", self.step)

    def _local_end(self) -> None:
        """All local gradients are there; DDP may still wait for other ranks, perhaps for ever: send what is known."""
        self.seen.use, self.seen.phase = self.gradients.states(), self.phase
        self._send_step()

    def _send_step(self) -> None:
        graph = self.structure.result(self.watch.calls)
        if graph not in self.graphs:
            self.graphs.append(copy.deepcopy(graph))        # the step may go on, and this one with it
            self.send("graph", graph)
        self.seen.graph = self.graphs.index(graph)
        self.seen.fired = dict(self.gradients.fired)
        if self.phase in ("optimizer", "done") or (self.seen.use and self.phase == "backward"):
            self.seen.use, self.seen.synced = self.gradients.states(), self.gradients.synced()
        self.send("step", self.seen)

    def _after_step(self, step: int) -> None:
        if changes := self.since.look(step):
            self.send("changes", changes)
        strays = self.since.strays(self.optimizer, self.structure.reached)
        for leaf, stray in strays.items():
            stray.terms = self.structure.terms_of(leaf)
        if strays:
            self.send("strays", sorted(strays.values(), key=lambda stray: stray.name))
        if not self.watch.joined:
            self._send_signatures("parameters", step, self.model.named_parameters())

    # ------------------------------------------------------------------ events, signatures, the end

    def _event(self, kind: str, detail: str, place: Place | None) -> None:
        if self.step is not None or kind in CHANGES:        # the optimizer's factory may change the model before the first step
            self.send("event", Event(self.step or 0, kind, detail, place))

    def _send_signatures(self, what: str, step: int | None, tensors: Any) -> None:
        tensors = [(n, t) for n, t in tensors if not isinstance(t, torch.nn.parameter.UninitializedTensorMixin)]
        whole = step is None or step >= self.spec.run.steps - 1
        self.send("signatures", (what, step, signatures(tensors, whole)))

    def _optimizer_steps(self, optimizer: torch.optim.Optimizer) -> None:
        """Compare gradients where they are used: when an optimizer steps, and only those that it holds."""
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        held = {name: p for name, p in self.model.named_parameters() if id(p) in own}
        if self.program.custom_step and self.gradients.lost(held):
            self._event("cleared", "zero_grad" if self.watch.cleared else "", self.watch.cleared or user_place())
        if not self.watch.joined:
            self._send_signatures(f"gradients.{self.stepped}", self.step,
                                  [(name, p.grad) for name, p in held.items() if p.grad is not None])
        self.stepped += 1

    def _failure(self, error: BaseException) -> Failure:
        running = self.watch.running if self.watch else []
        module = self.watch.names.get(id(running[-1]), "") if running else ""
        return dataclasses.replace(describe(error, self.phase, self.step), module=module)

    def _close(self, caught: list) -> None:
        if self.watch is not None and hasattr(self, "gradients"):
            self.gradients.remove()
            self.send("branches", self.branches.found())
            self.send("layouts", list(self.gradients.layouts))
            self.send("dead", self.watch.activations.found())
            self.send("batchnorm", self.watch.activations.batchnorm)
            self.send("size", [float(f"{size:.3g}") for size in self.gradients.size])
        self.send("notes", list(dict.fromkeys(str(w.message).split("\n")[0][:200] for w in caught))[:20])
