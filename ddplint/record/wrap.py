"""The wrapper with the spec's keywords, and where the optimizer was constructed."""

import contextlib
import difflib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from ddplint.errors import SpecError
from ddplint.evidence import Place
from ddplint.record.source import user_place


def ddp_keywords() -> list[str]:
    """The keywords of the installed DistributedDataParallel."""
    return [name for name in inspect.signature(DistributedDataParallel).parameters if name != "module"]


def wrap(model: torch.nn.Module, keywords: dict[str, Any], device: torch.device,
         kind: type[DistributedDataParallel] = DistributedDataParallel) -> DistributedDataParallel:
    """DDP around the model. SpecError for a keyword that the installed DDP does not have."""
    keywords = dict(keywords)
    # SyncBatchNorm refuses tensors on the CPU; there BatchNorm stays as it is.
    if keywords.pop("sync_batchnorm", False) and device.type == "cuda":
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    known = ddp_keywords()
    defaults = inspect.signature(DistributedDataParallel).parameters
    for name, value in keywords.items():
        if name in known and isinstance(defaults[name].default, bool) and not isinstance(value, bool):
            raise SpecError(f"expected true or false, found {value!r}", where=f"ddp.{name}")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise SpecError(f"DistributedDataParallel has no keyword '{name}'", where="ddp",
                            hint=f"did you mean '{near[0]}'?" if near else f"one of {', '.join(known)}")
    if device.type == "cuda":
        keywords.setdefault("device_ids", [device])
    return kind(model, **keywords)


@contextlib.contextmanager
def optimizer_places() -> Iterator[dict[int, Place | None]]:
    """The user's lines at which optimizers are constructed inside the block, in order, by the optimizer's id."""
    places: dict[int, Place | None] = {}
    original = torch.optim.Optimizer.__init__

    def constructed(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        places[id(optimizer)] = user_place()
        original(optimizer, *args, **kwargs)
    torch.optim.Optimizer.__init__ = constructed
    try:
        yield places
    finally:
        torch.optim.Optimizer.__init__ = original
