"""The solo run: one scenario on one rank again, alone, under the tracer, to find causes with the user's line.

torch's in-process ``fake`` group stands for the other ranks, so that the user's collectives return at once. The
wrapper is a genuine DistributedDataParallel whose forward goes straight to the module: its reducer is never armed.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed import fake_pg

from ddplint.evidence import Cause
from ddplint.record.calls import storage_of
from ddplint.record.causes import building, decide, inplace, spent, strays, uneven
from ddplint.record.causes.nonfinite import why_blown
from ddplint.record.causes.updates import Updates
from ddplint.record.construction import Construction
from ddplint.record.enact import Enactment, phase
from ddplint.record.firings import Firings
from ddplint.record.frames import Frames
from ddplint.record.gradmode import shown_to
from ddplint.record.history import Op, Site, frame_site, here
from ddplint.record.program import Program
from ddplint.record.replay import Replay
from ddplint.record.request import MISSING, NO_STEPS, ZERO, Request
from ddplint.record.slopes import Slopes
from ddplint.record.source import adopt, set_folder, stack
from ddplint.record.trace import ANY, Tracer
from ddplint.record.wrap import optimizer_places
from ddplint.spec import Spec

Send = Callable[[str, Any], None]


class Solo(DistributedDataParallel):
    """DDP for isinstance, ``module``, ``no_sync`` and ``join``; forward is the module's own."""

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def run(spec: Spec, request: Request, send: Send) -> bool:
    """Answer with ``send("causes", {subject: Cause})``. Needs a process without a process group, and leaves it as it was.

    What the user's code raises while the model is built passes through; within a step it ends the run, and what was
    seen until then counts.
    """
    set_folder(spec.folder)
    cuda = spec.run.device == "cuda" or (spec.run.device == "auto" and torch.cuda.is_available())
    program = Program(spec, request.scenario, request.rank, spec.run.world_size, torch.device("cuda" if cuda else "cpu"))
    with fake_group(request.rank, spec.run.world_size), torch.set_grad_enabled(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")         # the real run has reported them
        solo = SoloRun(program, request)
        send("causes", solo.causes())
        if solo.error is not None:
            send("cut", f"{type(solo.error).__name__}: {str(solo.error).partition(chr(10))[0]}")
        if request.firings and solo.firings is not None:
            send("firings", solo.firings.twice)
    return solo.error is None


@contextlib.contextmanager
def fake_group(rank: int, world_size: int) -> Iterator[None]:
    dist.init_process_group("fake", store=fake_pg.FakeStore(), rank=rank, world_size=world_size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def uncompiled() -> contextlib.AbstractContextManager:
    """Run compiled regions as they are written, where this torch can."""
    return torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else contextlib.nullcontext()


class SoloRun:
    values = True
    """Whether tensors hold numbers."""

    def __init__(self, program: Program, request: Request):
        self.program, self.request = program, request
        subjects = [*request.parameters, *(f"use:{p}:{m}" for p, m in request.uses), *request.buffers,
                    *([ANY] if request.loss or request.terms else [])]
        self.frames, self.construction = Frames(), Construction()
        self.tracer = Tracer({name: i for i, name in enumerate(subjects)}, self._source_name, self.frames.depth)
        self.tracer.keep_saved = request.inplace
        self.frames.order = self.tracer.tick
        self.found: dict[str, Cause] = {}
        self.names: dict[int, str] = {}
        self.wrapped_parameters: set[int] = set()
        self.strays: dict[int, tuple[torch.Tensor, Site | None]] = {}
        self.held: set[int] = set()
        """ids of what the optimizer holds."""
        self.initialised: dict[int, Site] = {}
        self.written: dict[int, Site] = {}
        """Memory -> where it was first written to after the wrap."""
        self.error: Exception | None = None
        """What ended the run before its last step."""
        self.blown: Cause | None = None
        self.firings: Firings | None = None
        self.updates: Updates | None = None

    def causes(self) -> dict[str, Cause]:
        self.program.resolve()
        with uncompiled(), self.construction, self.tracer, self.frames, shown_to(self.tracer):
            self._build()
            if self.model is not None and not self.request.uninitialized and self._wants_steps():
                self._steps(self._wrap())
        return self.found

    # ------------------------------------------------------------------ building

    def _build(self) -> None:
        """The model (None where it cannot be built on this rank), and the causes that lie in its building."""
        request, self.model = self.request, None
        values = ZERO in request.parameters.values()
        if values:
            self.tracer.watchers.append(self._note_initialised)
        with phase(self.tracer if values else None, self.frames, "build"):
            try:
                self.model = self.program.build()
            except Exception:
                if not request.mismatched:
                    raise
        self.tracer.watchers.clear()
        self.strays.clear()
        if request.mismatched:
            self._ask("model:", building.why_mismatched, self.model, self.construction, self.frames, request.mismatched)
        if self.model is not None:
            for names in request.ties:
                self._ask(f"tie:{names[0]}", building.why_untied, self.model, self.construction, names)
            for name in request.uninitialized:
                self._ask(f"parameter:{name}", building.why_uninitialized, self.model, self.construction, name)

    def _note_initialised(self, op: Op, inputs: list, results: list) -> None:
        for tensor in results:
            if isinstance(tensor, nn.Parameter) and op.site is not None:
                self.initialised[id(tensor)] = op.site

    def _note_written(self, tensor: torch.Tensor) -> None:
        """A parameter, or what shares its memory (``p.data``), that the user's code wrote to after the wrap."""
        if (site := here()) is not None:
            self.written.setdefault(storage_of(tensor), site)

    def _wrap(self) -> Enactment:
        model = self.model
        adopt(model)
        self.frames.learn(model)
        trainable = any(p.requires_grad for p in model.parameters())
        wrapper = Solo(model, init_sync=False) if trainable else model
        self.construction.wrapped = True
        self.wrapped = {name: id(module) for name, module in model.named_modules()}
        self.parameters = dict(model.named_parameters())
        if self.request.firings:
            flags = self.program.spec.ddp
            self.firings = Firings(model, wrapper, bool(flags.get("find_unused_parameters") and not flags.get("static_graph")))
        self.wrapped_parameters = {id(p) for p in self.parameters.values()}
        watched = self.request.written or self.request.buffers
        self.tracer.on_write = self._note_written if watched else None
        with phase(self.tracer if watched else None, self.frames, "build"), optimizer_places() as places:
            optimizer = self.program.make_optimizer(model)
        self.held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        self.updates = Updates(model, places) if self._asks_for_values() else None
        return Enactment(self.program, wrapper, optimizer, self.tracer, self.frames, self.updates)

    # ------------------------------------------------------------------ steps

    def _asks_for_values(self) -> bool:
        asked = set(self.request.parameters.values()) - {MISSING} or self.request.terms or self.request.loss
        return self.values and bool(asked)

    def _wants_steps(self) -> bool:
        return any(value for name, value in vars(self.request).items() if name not in NO_STEPS)

    def _steps(self, enactment: Enactment) -> None:
        with enactment.watched():
            for step in range(max(self.request.steps, default=0) + 1):
                replay = self._replay(step)
                traced = step in self.request.steps
                if self.firings is not None:
                    self.firings.begin_step(replay)
                try:
                    enactment.run(replay, traced)
                except Exception as error:  # noqa: BLE001 (the fault itself, perhaps; what was seen until then counts)
                    replay.error = error
                if traced:
                    self._decide(replay)
                if replay.error is not None:
                    self.error = replay.error
                    break
                self._update(enactment)

    def _update(self, enactment: Enactment) -> None:
        enactment.update()

    def _replay(self, step: int) -> Replay:
        self.tracer.forget()
        self.frames.forget()
        model, kinds = self.model, set(self.request.parameters.values())
        self.names = {id(t): name for named in (model.named_parameters, model.named_buffers) for name, t in named()}
        replay = Replay(self.request, self.program, model, self.tracer, self.frames, self.construction, self.parameters, step,
                        initialised=self.initialised, wrapped=self.wrapped, blown=self.blown or (self.updates and self.updates.overshot))
        if self._asks_for_values():
            replay.slopes = Slopes(self.tracer)
        if self.request.spent:
            replay.spent = spent.Spent(replay, model)
            self.tracer.watchers.append(replay.spent)
        if MISSING in kinds or self.request.outputs or self.request.uses:
            self.frames.bits_of = lambda tensor: self.tracer.value_of(tensor).data
        if MISSING in kinds or self.request.modules:
            self.frames.watched = {id(m): name for name, m in model.named_modules() if name}
        return replay

    def _source_name(self, tensor: torch.Tensor) -> str | None:
        """What the tracer calls a tensor that no operation made; notes what is trained and DDP did not see."""
        key = id(tensor)
        if key not in self.wrapped_parameters and key not in self.strays \
                and (isinstance(tensor, nn.Parameter) or key in self.held) and tensor.requires_grad:
            self.strays[key] = tensor, reader_of(tensor)
        return self.names.get(key)

    # ------------------------------------------------------------------ decisions

    def _decide(self, replay: Replay) -> None:
        request = self.request
        for name, kind in request.parameters.items():
            if name in self.parameters:
                # Zero at the first steps may have good reasons: there the last step counts.
                self._ask(f"parameter:{name}", decide.why_parameter, replay, name, kind, renew=kind == ZERO)
        for path in request.outputs:
            self._ask(f"output:{path}", decide.why_output, replay, path)
        for name in request.terms:
            self._ask(f"term:{name}", decide.why_term, replay, name)
        for parameter, module in request.uses:
            self._ask(f"use:{parameter}:{module}", decide.why_use, replay, parameter, module)
        for name in request.modules:
            self._ask(f"module:{name}", decide.why_module, replay, name)
        if request.loss:
            self._ask("loss:", decide.why_loss, replay)
        if request.inplace and replay.error is not None:
            self._ask("failure:", inplace.why_inplace, replay)
        if self.firings is not None:
            self._ask("failure:", self.firings.why)
        if replay.spent is not None and (replay.error is not None or replay.step == request.steps[-1]):
            self._ask("failure:", spent.why_spent, replay, self._sink(replay.step))
        for name, stray in strays.asked_for(request.strays, self.strays, self.model, self.program.outside).items():
            self._ask(f"stray:{name}", strays.why_stray, self.model, self.construction, self.wrapped, stray)
        if request.batches:
            self._ask("batches:", uneven.why_fewer, replay)
        if request.update:
            self._ask("ranks:", uneven.why_no_update, replay, *request.update)
        if request.written:
            self._ask("ranks:", building.why_written, self.parameters, self.written, request.written)
        if request.buffers:
            self._ask("buffers:", building.why_buffers_differ, replay, self.written)
        for name in request.changes:
            self._ask(f"change:{name}", strays.why_changed, self.model, self.construction, self.wrapped, name)
        if replay.slopes is not None and self.blown is None:
            self.blown = why_blown(replay)

    def _sink(self, step: int) -> str:
        """The keyword under which DDP puts a node of its own behind the outputs of a forward in this step."""
        flags = self.program.spec.ddp
        if flags.get("static_graph"):
            return "static_graph" if step == 0 else ""
        return "find_unused_parameters" if flags.get("find_unused_parameters") else ""

    def _ask(self, subject: str, why: Callable[..., Cause | None], *args: Any, renew: bool = False) -> None:
        """Keep the first cause that is found for a subject, step by step (``renew``: the last)."""
        if subject in self.found and not renew:
            return
        try:
            cause = why(*args)
        except Exception as error:  # noqa: BLE001 (ours: one subject must not take the others with it)
            cause = Cause("unknown", f"the search for its cause failed ({type(error).__name__}: {error})")
        if cause is not None:
            self.found[subject] = cause


def reader_of(parameter: torch.Tensor) -> Site | None:
    """The innermost user frame that is not a method of a module which owns the parameter."""
    for frame in stack():
        owner = frame.f_locals.get("self")
        if not (isinstance(owner, nn.Module) and any(p is parameter for p in owner.parameters())):
            return frame_site(frame)
    return None
