"""All ranks' readings: by one collective after a sample, through the launch's store at the end."""

import contextlib
import json
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_watched = 0


class Exchange:
    def __init__(self, ddp: DistributedDataParallel):
        global _watched
        self.group, self.rank, self.size = ddp.process_group, dist.get_rank(ddp.process_group), ddp.process_group.size()
        on_device = "nccl" in dist.get_backend(self.group)
        self._device = next(ddp.module.parameters()).device if on_device else torch.device("cpu")
        self._prefix = f"ddplint/monitor/{getattr(self.group, 'group_name', '')}/{_watched}"
        _watched += 1

    def gather(self, vector: list[float]) -> list[list[float]]:
        """One collective on the wrapper's own group, in the order of its own: every rank calls this after the same step."""
        own = torch.tensor(vector, dtype=torch.float64, device=self._device)
        everyone = torch.empty(self.size, len(vector), dtype=torch.float64, device=self._device)
        dist.all_gather(list(everyone), own, group=self.group)
        return everyone.tolist()

    def leave(self, message: dict[str, Any], patience: float) -> dict[int, dict[str, Any]]:
        """Put the rank's last words into the store, and on rank 0 wait a while for the others': no collective, because
        a rank that ended earlier or later would pair it with one of DDP's."""
        told = {self.rank: message}
        with contextlib.suppress(Exception):
            store = dist.distributed_c10d._get_default_store()
            store.set(f"{self._prefix}/{self.rank}", json.dumps(message))
            until = time.monotonic() + patience
            for rank in range(self.size) if self.rank == 0 else ():
                key = f"{self._prefix}/{rank}"
                with contextlib.suppress(Exception):
                    store.wait([key], timedelta(seconds=max(until - time.monotonic(), 0.01)))
                    told[rank] = json.loads(store.get(key))
        return told


def under_join(ddp: DistributedDataParallel) -> bool:
    """Under ``join()`` a rank whose data has ended shadows DDP's collectives, and none of ours."""
    return bool(getattr(getattr(ddp, "_join_config", None), "enable", False))
