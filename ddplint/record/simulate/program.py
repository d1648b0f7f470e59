"""The user's program on fake tensors."""

from typing import Any

import torch
from torch import nn

from ddplint.record.program import Program
from ddplint.record.simulate.inputs import mapped
from ddplint.record.simulate.world import World
from ddplint.spec import Spec


class FakeProgram(Program):
    def __init__(self, world: World, spec: Spec, scenario: str, rank: int):
        super().__init__(spec, scenario, rank, spec.run.world_size, torch.device("cpu"))
        self.world = world
        self.total_is_given = False
        """Whether the total came with the terms, and was not made of them."""

    def build(self) -> nn.Module:
        model = super().build()
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if type(parameter) is nn.Parameter and parameter.is_floating_point():      # made by other means than Parameter()
                    module._parameters[name] = nn.Parameter(self.world.like(parameter), parameter.requires_grad)
        return model

    def batch(self, item: int) -> Any:
        return mapped(super().batch(item), self._fake)

    def total(self, terms: dict[str, Any], given: Any = None) -> Any:
        self.total_is_given = self._total is None and given is not None
        return super().total(terms, given)

    def _fake(self, path: str, tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()) or path in self.spec.run.real \
                or tensor.layout is not torch.strided:
            return tensor
        fake = self.world.like(tensor.detach(), self.world.source(path))
        return fake.requires_grad_(tensor.requires_grad)

