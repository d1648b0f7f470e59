"""The parent's side of the fork server: start it early, and start processes from it. Imports no torch."""

import contextlib
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.util
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

from ddplint.errors import StartError
from ddplint.record import processes
from ddplint.record.preload import TEMP_FOLDER

START_TIMEOUT = 300.0
"""Seconds in which a rank must be up: torch is imported then, perhaps from a slow disk."""
PRELOAD = "ddplint.record.preload"
CONTEXT = multiprocessing.get_context("forkserver")
_lock = threading.RLock()


def warm() -> None:
    """Start the fork server, unless it runs; it imports torch while the caller goes on."""
    with _lock, _bare_main(), _server_environment():
        CONTEXT.set_forkserver_preload([PRELOAD])
        multiprocessing.forkserver.ensure_running()


def start(target: Callable, *args: Any) -> BaseProcess:
    """A new process that calls ``target(*args)``; waits until the server has imported torch.

    A server that was killed is replaced once. StartError where that fails too, or where it does not answer.
    """
    with _lock, _bare_main(), _server_environment():        # a server that dies meanwhile is replaced from within process.start()
        return _started(target, args) or _started(target, args) or _give_up("it was killed, or its import crashed")


def _started(target: Callable, args: tuple) -> BaseProcess | None:
    """None where the server died, which is reaped then; killing it is what ends the wait for one that does not answer."""
    warm()
    process, late = CONTEXT.Process(target=target, args=args), threading.Event()
    watchdog = threading.Timer(START_TIMEOUT, lambda: (late.set(), _kill_all()))
    watchdog.daemon = True
    watchdog.start()
    try:
        process.start()
        return process
    except (EOFError, ConnectionError):
        stop()                                              # a process closes its sockets before waitpid tells that it is dead
        return _give_up(f"no answer within {START_TIMEOUT:g} s") if late.is_set() else None
    finally:
        watchdog.cancel()
        watchdog.join()


def _give_up(why: str) -> NoReturn:
    raise StartError(f"the ranks cannot be started: the process that imports torch for them failed ({why})")


def _kill_all() -> None:
    """The server, and ranks that it has started: one that was stopped must not keep the caller waiting either."""
    if (server := server_pid()) is not None:
        processes.kill([server, *processes.descendants([server])])


def stop() -> None:
    """End the server now, not when it has finished importing and finds its parent gone."""
    server = multiprocessing.forkserver._forkserver
    if server._forkserver_pid is not None:
        with _lock, contextlib.suppress(OSError):
            os.kill(server._forkserver_pid, signal.SIGKILL)
            server._stop()


def server_pid() -> int | None:
    return multiprocessing.forkserver._forkserver._forkserver_pid


@contextlib.contextmanager
def _bare_main() -> Iterator[None]:
    """Keep children from importing the parent's ``__main__`` (a console script, pytest, the user's script) again.

    A worker of joblib has the start method "loky", which the children would not know.
    """
    main, method = sys.modules["__main__"], multiprocessing.get_start_method()
    sys.modules["__main__"] = types.ModuleType("__main__")
    if method not in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("spawn", force=True)
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _server_environment() -> Iterator[None]:
    """The server's own environment; ranks get the parent's (see rank.py).

    PYTHONSAFEPATH: a file of the user's called random.py must not stand in for the standard library's.
    """
    changes = {
        TEMP_FOLDER: multiprocessing.util.get_temp_dir(),
        "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in _home_last(sys.path)),
        "PYTHONSAFEPATH": "1",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",         # torch.cuda.is_available() without a context: fork stays possible
    }
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _home_last(path: list[str]) -> list[str]:
    """The parent's sys.path without the current folder, and then ddplint's own home."""
    here, home = os.getcwd(), os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [p for p in path if p and os.path.abspath(p) not in (here, home)] + [home]
