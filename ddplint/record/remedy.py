"""A change to the program that is tried under real DDP. Sent to the ranks: imports no torch here."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddplint.spec import Spec

if TYPE_CHECKING:
    from torch import nn

    from ddplint.record.program import Program


@dataclass(frozen=True)
class Remedy:
    ddp: dict[str, Any] = field(default_factory=dict)
    """DDP's keywords that differ from the spec's."""
    freeze: tuple[str, ...] = ()
    """Parameters that are frozen before DDP is built."""
    thaw: tuple[str, ...] = ()
    """Parameters that are made trainable before DDP is built."""
    add: tuple[str, ...] = ()
    """Loss terms that are added to the total as they are."""
    sort: bool = False
    """Whether the model's parts are registered in the order of their names."""
    nonreentrant: bool = False
    """Whether every checkpoint() runs with use_reentrant=False."""

    def program(self, spec: Spec, scenario: str, *place: Any) -> "Program":
        from ddplint.record.program import Program

        program = Program(dataclasses.replace(spec, ddp={**spec.ddp, **self.ddp}), scenario, *place)
        program.change, program.add = self._change, self.add
        return program

    def _change(self, model: "nn.Module") -> None:
        for name, parameter in model.named_parameters():
            if name in self.freeze or name in self.thaw:
                parameter.requires_grad_(name in self.thaw)
        for module in list(model.modules()) if self.sort else ():
            _sort(module)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """What must hold while the program runs."""
        if not self.nonreentrant:
            yield
            return
        from torch.utils import checkpoint

        original = checkpoint.CheckpointFunction.apply

        def nonreentrant(function: Any, preserve: bool, *args: Any) -> Any:
            return checkpoint.checkpoint(function, *args, use_reentrant=False, preserve_rng_state=preserve)
        checkpoint.CheckpointFunction.apply = nonreentrant      # wherever the user imported checkpoint() from
        try:
            yield
        finally:
            checkpoint.CheckpointFunction.apply = original


def _sort(module: "nn.Module") -> None:
    """By name, 10 after 2; not the parts of a Sequential, which run in their order."""
    from torch import nn

    for members in (module._parameters, {} if isinstance(module, nn.Sequential) else module._modules):
        ordered = sorted(members.items(), key=lambda item: [(part.isdecimal(), int(part) if part.isdecimal() else part)
                                                            for part in re.split(r"(\d+)", item[0])])
        members.clear()
        members.update(ordered)


AS_IT_IS = Remedy()
