"""What the fork server imports once, for all ranks of all scenarios and jobs: torch and what DDP pulls in.

The user's modules are NOT imported here: torch operations at import hang forked ranks, and an error would end the
server. Nothing here runs a torch operation, which keeps the fork safe (no threads, no CUDA).
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import shutil
import sys
import warnings

TEMP_FOLDER = "DDPLINT_FORK_SERVER_TEMP"
"""Set by forkserver.warm(): the folder of the server's socket. Where it is not set, this is no fork server."""

_MODULES = (
    "torch",
    "torch._dynamo",                 # DDP and every optimizer import it
    "torch.distributed",
    "torch.nn.parallel",
    "torch.optim",
    "torch.utils.data",
    "torch.utils.checkpoint",
    "hydra.utils",
    "ddplint.record.rank",
    "ddplint.record.observe",
    "ddplint.record.solo",
    "ddplint.record.foresee",
    "ddplint.record.simulate.job",
    "ddplint.record.simulate.causes",
)
_PR_SET_CHILD_SUBREAPER = 36         # linux/prctl.h


def _detach(temp_folder: str) -> None:
    """Let the server hold nothing of the parent's: no terminal, no pipe, no signal meant for its process group."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.setpgid(0, 0)
    if sys.platform == "linux":      # orphans of ranks become children of the server, where they can be found
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    atexit.register(_remove, temp_folder, os.getpid())


def _remove(temp_folder: str, server: int) -> None:
    """What the parent does itself, unless it was killed. Ranks inherit this handler, and must not do it."""
    if os.getpid() == server:
        shutil.rmtree(temp_folder, ignore_errors=True)


def import_all() -> None:
    """Pay for the imports now, so that no job pays (and seems to hang)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _MODULES:
            with contextlib.suppress(Exception):      # the rank meets it again, and reports it
                importlib.import_module(name)


if temp_folder := os.environ.pop(TEMP_FOLDER, ""):
    _detach(temp_folder)
    gc.disable()                     # saves a tenth of the time
    import_all()
    gc.enable()
    warnings.filterwarnings("ignore", module="multiprocessing.forkserver")   # "unexpected pid": an orphan was reaped
    gc.freeze()                      # keeps the ranks' collections short, and the pages shared
