"""How a rank dies: with its parent, at the latest; and how it tells where it was."""

import atexit
import contextlib
import faulthandler
import fcntl
import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import NoReturn

DUMP_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + (7 if hasattr(signal, "SIGRTMIN") else 0)
"""Asks a rank for its stack; a real-time signal where there are any, as users' code takes SIGUSR1 and SIGUSR2."""


def die_with(parent: Connection) -> None:
    """Kill this process group as soon as the writing end of ``parent`` is closed, that is, when the parent is gone.

    The kernel does it where it can (O_ASYNC on a pipe), so that a C call that keeps the GIL dies as well; a thread
    does it elsewhere.
    """
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(parent.fileno(), fcntl.F_SETOWN, -os.getpgid(0))
        fcntl.fcntl(parent.fileno(), fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(parent.fileno(), fcntl.F_GETFL)
        fcntl.fcntl(parent.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)
    threading.Thread(target=_wait_for_end, args=(parent,), name="ddplint-lifeline", daemon=True).start()


def _wait_for_end(parent: Connection) -> None:
    with contextlib.suppress(OSError):           # the user's code closed the descriptor: the kernel's watch went too
        os.read(parent.fileno(), 1)
        os.killpg(0, signal.SIGKILL)


def tell_stacks(to: Connection) -> None:
    """Write every thread's Python stack to ``to`` on DUMP_SIGNAL, and when a fault ends the process.

    faulthandler does it in the signal handler itself: a C call that never returns is no obstacle.
    """
    faulthandler.enable(file=to.fileno(), all_threads=True)
    faulthandler.register(DUMP_SIGNAL, file=to.fileno(), all_threads=True, chain=False)


def end(status: int) -> NoReturn:
    """End this process at once: after its exit handlers (a user's temporary folders), without waiting for threads."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    os._exit(status)
