"""A Hugging Face callback: ``Trainer(..., callbacks=[DDPLint(every=100)])``."""

from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback

from ddplint.monitor import watch


class DDPLint(TrainerCallback):
    """A callback is given the bare model: the wrapper is recognised at its first forward."""

    def __init__(self, every: int = 100, **options: Any):
        self.every, self.options, self.monitor, self._search = every, options, None, None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        inner = getattr(model, "module", model)

        def before(module: torch.nn.Module, inputs: Any) -> None:
            if isinstance(module, DistributedDataParallel) and module.module is inner and module.training:
                self._stop_search()
                self.monitor = watch(module, self.every, **self.options)
                self.monitor.forward_begins(module, inputs)     # its own hook comes too late for this forward
        self._search = torch.nn.modules.module.register_module_forward_pre_hook(before)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stop_search()
        if self.monitor is not None:
            self.monitor.close()

    def _stop_search(self) -> None:
        if self._search is not None:
            self._search.remove()
            self._search = None
