"""One simulated rank: the same observation as of a real one (observe.py), without what only numbers can tell."""

import pickle
import types
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ddplint.evidence import Failure, Place
from ddplint.record.counts import DIVISIONS, Counts
from ddplint.record.observe import Observation
from ddplint.record.simulate.program import FakeProgram
from ddplint.record.simulate.reducer import installed
from ddplint.record.simulate.world import Unknowable, World
from ddplint.record.solo import fake_group

STEP_PHASES = ("forward", "terms", "total", "backward", "optimizer")


class _KnownCounts(Counts):
    """Without those that only numbers tell."""

    def _count(self, name: str, args: tuple, kwargs: dict) -> float | None:
        unknown = any(isinstance(a, FakeTensor) and not a.is_floating_point() for a in args) or (
            name in DIVISIONS and len(args) > 1 and isinstance(args[1], FakeTensor))
        return None if unknown else super()._count(name, args, kwargs)


class Simulation(Observation):
    """``messages`` holds what a real rank would have sent; phases are passed on at once."""

    counts_type = _KnownCounts
    program: FakeProgram

    def __init__(self, program: FakeProgram, tell: Any, armed: bool = True):
        super().__init__(program, self._keep)
        self.armed = armed
        self.world: World = program.world
        self.messages: list[tuple[str, Any]] = []
        self.sequence: list[tuple[int, str, Place | None]] = []
        """(step, what, line) of each collective: the reductions, the broadcasts of buffers and the user's own."""
        self.unreduced: list[int] = []
        self._waiting = False
        """Whether a backward has run since the last reduction."""
        self._backward_place: Place | None = None
        self.stuck = ""
        self._tell = tell

    def _keep(self, kind: str, body: Any) -> None:
        if kind == "phase":
            self._tell(kind, body)
        else:
            self.messages.append((kind, pickle.loads(pickle.dumps(body))))      # as it is now: it may still grow

    def observe(self) -> None:
        """Run the scenario; everything that is seen goes into ``messages``."""
        with fake_group(self.program.rank, self.program.world_size), installed(self._reduced, self.armed), \
                self.world.active():
            self.run()

    def _reduced(self) -> None:
        self._waiting = False
        self.sequence.append((self.step or 0, "reduction", self._backward_place))

    def _event(self, kind: str, detail: str, place: Place | None) -> None:
        super()._event(kind, detail, place)
        if kind == "collective":
            self.sequence.append((self.step or 0, detail, place))
        elif kind == "forward" and detail != "no-sync" and self.wrapper.will_sync_module_buffers():
            self.sequence.append((self.step or 0, "broadcast of buffers", place))
        elif kind == "backward":
            self._waiting, self._backward_place = True, place
        elif kind == "optimizer-step" and self._waiting and not self.wrapper.reducer.unfinished and self.step is not None:
            self._waiting = False
            self.unreduced.append(self.step)

    # ------------------------------------------------------------------ what differs from a real rank

    def _enter(self, phase: str, step: int | None = None) -> None:
        self.world.in_step = phase in STEP_PHASES
        super()._enter(phase, step)

    def _build(self) -> None:
        super()._build()
        present = torch.ones((), dtype=torch.float64)
        self.gradients.measure = lambda gradient: present       # a fake gradient is there: no more is known of it
        self.watch.activations.suspects.clear()         # whether a module is dead, only values tell

    def _make_optimizer(self, model: torch.nn.Module) -> None:
        super()._make_optimizer(model)
        if isinstance(self.optimizer, torch.optim.Optimizer):
            self.optimizer.step = types.MethodType(_step, self.optimizer)

    def _run_step(self, step: int) -> None:
        self.world.guesses.begin_step()
        super()._run_step(step)

    def _note_terms(self, terms: dict[str, Any], parts: int, counts: Counts) -> None:
        """Weights are known where the gradient of the total comes to the term as a real number."""
        for name, term in terms.items():
            if isinstance(term, torch.Tensor) and (counted := counts.of(term)) is not None:
                self.seen.counts[name], self.structure.divided_at[name] = counted
            if isinstance(term, torch.Tensor) and term.requires_grad:
                term.register_hook(lambda gradient, name=name: self._weigh(name, gradient, parts))

    def _weigh(self, name: str, gradient: torch.Tensor, parts: int) -> torch.Tensor:
        if not self.world.is_fake(gradient):
            self.seen.weights[name] = float(gradient.sum()) * parts
            return self.world.like(gradient)
        return gradient

    def _note_total(self, total: Any) -> None:
        tensor = isinstance(total, torch.Tensor)
        self.seen.total_differentiable = tensor and total.requires_grad
        if tensor:
            self.seen.total_shape = list(total.shape)

    def _backward(self, total: Any, parts: int) -> None:
        if isinstance(total, torch.Tensor) and total.requires_grad and total.numel() == 1 and not self.program.total_is_given:
            (total if parts == 1 else total / parts).backward(torch.ones(total.shape, dtype=total.dtype))
        else:
            super()._backward(total, parts)

    def _send_signatures(self, what: str, step: int | None, tensors: Any) -> None:
        """Fake tensors hold nothing to compare."""

    def _failure(self, error: BaseException) -> Failure:
        if isinstance(error, Unknowable) or isinstance(error.__cause__, Unknowable):
            self.stuck = str(error)
        return super()._failure(error)

    def _close(self, caught: list) -> None:
        super()._close(caught)
        self.messages = [message for message in self.messages if message[0] not in ("size", "dead", "signatures")]


def _step(optimizer: torch.optim.Optimizer, closure: Any = None) -> Any:
    """In place of ``optimizer.step``: hooks and the closure run, no number is changed."""
    from torch.optim import optimizer as torch_optimizer
    for hook in list(torch_optimizer._global_optimizer_pre_hooks.values()):
        hook(optimizer, (), {})
    return closure() if closure is not None else None
