"""A Lightning callback: ``Trainer(strategy="ddp", callbacks=[DDPLint(every=100)])``."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch.nn.parallel import DistributedDataParallel

from ddplint.monitor import watch


class DDPLint(Callback):
    """Watches the wrapper that the trainer's strategy made; without one (a single process) it does nothing."""

    def __init__(self, every: int = 100, **options: Any):
        self.every, self.options, self.monitor = every, options, None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if isinstance(trainer.strategy.model, DistributedDataParallel):
            self.monitor = watch(trainer.strategy.model, self.every, **self.options)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._close(None)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._close(exception)

    def _close(self, error: BaseException | None) -> None:
        if self.monitor is not None:
            self.monitor.close(error)
