"""Values and gradients of every traced operation's results: where they stop being finite, where gradients die."""

import math

import torch

from ddplint.record.history import Op, Value
from ddplint.record.trace import Tracer

FINITE, INF, NAN = "finite", "inf", "nan"


class Slopes:
    """A watcher of the tracer. Looks at each floating result, and hooks its gradient."""

    def __init__(self, tracer: Tracer):
        self.tracer = tracer
        self.order: list[Value] = []
        """Values in the order in which their gradients were complete."""
        tracer.watchers.append(self)

    def __call__(self, op: Op, inputs: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        for tensor, value in zip(inputs, op.inputs, strict=False):
            if value.op is None and not value.state:
                self._look(tensor, value)
                if tensor.requires_grad and tensor.is_leaf:
                    self._hook(tensor, value)
        births = 0
        for value in op.inputs:
            births |= value.births
        for tensor, value in zip(results, op.results, strict=True):
            self._look(tensor, value)
            value.births = births | self._born(op, value, births)
            if tensor.requires_grad:
                self._hook(tensor, value)

    def _look(self, tensor: torch.Tensor, value: Value) -> None:
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided or tensor.numel() == 0:
            value.state = FINITE
            return
        with torch.no_grad():
            detached = tensor.detach()
            largest = float(detached.abs().amax())
            value.state = NAN if math.isnan(largest) else INF if math.isinf(largest) else FINITE
            value.largest, value.zero = largest, largest == 0.0

    def _born(self, op: Op, value: Value, births: int) -> int:
        """The bit of a new birth: a non-finite result of finite inputs, or a NaN made of infinities that were meant."""
        if value.state == FINITE or births or not op.inputs:
            return 0
        states = {v.state for v in op.inputs}
        meant = any(math.isinf(n) or math.isnan(n) for n in op.literals if isinstance(n, float))
        if NAN in states or (INF in states and value.state == INF) or (meant and value.state == INF):
            return 0
        if not self.tracer.births or self.tracer.births[-1] is not op:
            self.tracer.births.append(op)
        return 1 << len(self.tracer.births) - 1

    def _hook(self, tensor: torch.Tensor, value: Value) -> None:
        def note(gradient: torch.Tensor) -> None:
            if gradient is not None:
                dense = gradient.detach()
                dense = dense.coalesce().values() if dense.layout is torch.sparse_coo else dense
                value.slope = float(dense.abs().amax()) if dense.numel() else 0.0
                self.order.append(value)
        if tensor.is_leaf or not tensor._is_view():
            tensor.register_hook(note)
        else:       # a hook on a view that was written in place ends the process (torch 2.13): its node is asked instead
            number = tensor.output_nr
            tensor.grad_fn.register_prehook(lambda gradients: note(gradients[number]))
