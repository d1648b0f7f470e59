"""The rules during training: ``with watch(ddp_model, every=100): ...`` around a plain loop.

Between samples nothing happens but a count. A sampled step records the local gradients as a lint does (record.gradients),
then one small collective brings all ranks' readings together; rank 0 judges a sliding window of samples by the same
rules, and tells what is new. The adapters for Lightning and Hugging Face are in modules of their own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

    from ddplint.monitor.monitor import Monitor

__all__ = ["watch"]


def watch(ddp: "DistributedDataParallel", every: int = 100, **options: Any) -> "Monitor":
    """Watch a wrapped model from now until ``close()``, which a ``with`` block calls.

    Steps 0, 1 and 2 and then each ``every``-th are sampled. Options (see Monitor): ``window``, ``steps``, ``json``,
    ``tensorboard``, ``judgement``, ``name``. Every rank of the wrapper's process group must call it.
    """
    from ddplint.monitor.monitor import Monitor
    return Monitor(ddp, every, **options)
