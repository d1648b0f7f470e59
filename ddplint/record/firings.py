"""How often each parameter's gradient is complete within one step, where DDP's own run ended at the first that was twice."""

import functools

from torch import nn


class Firings:
    def __init__(self, model: nn.Module):
        self._counts: dict[str, int] = {}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(functools.partial(self._fire, name))

    def _fire(self, name: str, parameter: nn.Parameter) -> None:
        self._counts[name] = self._counts.get(name, 0) + 1

    def begin_step(self) -> None:
        self._counts.clear()

    def several(self) -> dict[str, int]:
        return {name: count for name, count in self._counts.items() if count > 1}
