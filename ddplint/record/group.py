"""The process group of one rank: one per job, so that no collective is left over for the next.

A local gang meets over loopback only, without a file and without a name look-up; a launched one where torchrun says.
"""

import itertools
import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist

from ddplint.errors import SpecError
from ddplint.evidence import Device
from ddplint.record.rank import ADDRESS, Meeting
from ddplint.spec import Run

_lints = itertools.count()


def own_gpu(run: Run, local_rank: int) -> torch.device | None:
    """The GPU of this number, counted round where there are fewer; None where there is none, or the spec says cpu."""
    count = torch.cuda.device_count() if run.device != "cpu" and torch.cuda.is_available() else 0
    return torch.device("cuda", local_rank % count) if count else None


def agree(run: Run, gpus: list[str]) -> tuple[str, str]:
    """Device type and backend, the same on every rank, from the GPU that each rank would have ("" for none).

    GPUs where every rank has one, with NCCL where each has one of its own: NCCL refuses two ranks on one GPU, gloo
    does not. Else the CPU. SpecError where the spec asks for what is not there.
    """
    kind = "cuda" if all(gpus) else "cpu"
    found, alone = len({*gpus} - {""}), kind == "cuda" and len({*gpus}) == len(gpus)
    if run.device == "cuda" and kind == "cpu":
        raise SpecError("found no GPU" if not found else "found no GPU on some hosts", where="run.device",
                        hint="set run.device=cpu, or auto")
    if run.backend == "nccl" and not alone:
        raise SpecError(f"nccl needs a GPU for each of {len(gpus)} ranks, found {found if kind == 'cuda' else 0}",
                        where="run.backend", hint="set run.backend=gloo, or lower run.world_size")
    return kind, run.backend if run.backend != "auto" else "nccl" if alone else "gloo"


class Group:
    """The default process group of this process; ``renew`` gives each job its own."""

    def __init__(self, run: Run, rank: int, gpus: list[str], own: torch.device | None, store: dist.Store, timeout: timedelta):
        self.rank, self.world_size, self.store, self._timeout = rank, len(gpus), store, timeout
        kind, self.backend = agree(run, gpus)
        self.device = own if own is not None and kind == "cuda" else torch.device("cpu")
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self._jobs, self.stale = 0, False
        """``stale``: a rank failed in the last job, so a collective of NCCL's may still be open."""

    def renew(self) -> None:
        """A fresh default group; NCCL's is kept (it costs a second) after a clean job."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        if dist.is_initialized():
            if self.backend == "nccl" and not self.stale:
                return
            dist.distributed_c10d._abort_process_group() if self.backend == "nccl" else dist.destroy_process_group()
        self.stale = False
        self._jobs += 1
        dist.init_process_group(self.backend, store=dist.PrefixStore(f"ddplint/job{self._jobs}", self.store),
                                rank=self.rank, world_size=self.world_size, timeout=self._timeout)

    def used(self) -> Device | None:
        """The GPU, and the most that the job took there; None on the CPU. The count is the host's: it asks no GPU."""
        if self.device.type == "cpu":
            return None
        return Device(str(self.device), self.backend, torch.cuda.max_memory_allocated(self.device))


def local_group(run: Run, meeting: Meeting) -> Group:
    """The group of a local gang. Its own time-out is longer than the parent's patience: it is the parent that ends a
    hang, with every rank's stack.
    """
    timeout = timedelta(seconds=run.timeout + 60)
    gpus = [own_gpu(run, rank) for rank in range(meeting.world_size)]
    _export(meeting)
    listener = meeting.listener
    store = dist.TCPStore(ADDRESS, meeting.port, meeting.world_size, is_master=listener is not None, timeout=timeout,
                          wait_for_workers=False, master_listen_fd=listener.detach() if listener is not None else None)
    return Group(run, meeting.rank, [str(gpu or "") for gpu in gpus], gpus[meeting.rank], store, timeout)


def _export(meeting: Meeting) -> None:
    """What torchrun sets, for user code that reads it, and loopback for the sockets of gloo and NCCL."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    rank, world_size = str(meeting.rank), str(meeting.world_size)
    os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=world_size, LOCAL_WORLD_SIZE=world_size, GROUP_RANK="0",
                      MASTER_ADDR=ADDRESS, MASTER_PORT=str(meeting.port),
                      GLOO_SOCKET_IFNAME=loopback, NCCL_SOCKET_IFNAME=loopback)
    if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"          # DETAIL crashes on gloo


def launched_group(run: Run, timeout: timedelta) -> Group:
    """The group of a launch (torchrun, submitit) that this process is a rank of; each lint has keys of its own."""
    store, rank, world_size = next(dist.rendezvous("env://", timeout=timeout))
    store = dist.PrefixStore(f"ddplint/lint{next(_lints)}", store)
    own = own_gpu(run, int(os.environ.get("LOCAL_RANK", rank)))
    store.set(f"ddplint/gpu/{rank}", _identity(own))
    return Group(run, rank, [store.get(f"ddplint/gpu/{r}").decode() for r in range(world_size)], own, store, timeout)


def _identity(gpu: torch.device | None) -> str:
    """Which GPU of all hosts': a launcher may show each rank one only, which is number 0 to every rank."""
    return "" if gpu is None else f"{socket.gethostname()} {getattr(torch.cuda.get_device_properties(gpu), 'uuid', gpu)}"
