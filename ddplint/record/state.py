"""What a user's code may change in a rank that outlives it, and putting that back before the next job."""

import contextlib
import gc
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.get_num_threads, torch.set_num_threads),
    (sys.getrecursionlimit, sys.setrecursionlimit),
)
_FLAGS = (
    (torch.backends.cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
    (torch.backends.cuda.matmul, ("allow_tf32",)),
    (sys, ("stdout", "stderr", "excepthook")),
    (warnings, ("showwarning",)),
)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class State:
    """The process's settings as they are now: working folder, environment, sys.path, warnings, torch's switches."""

    def __init__(self) -> None:
        self._folder, self._environ, self._path, self._argv = os.getcwd(), dict(os.environ), sys.path[:], sys.argv[:]
        self._filters = warnings.filters[:]
        self._settings = [(setter, getter()) for getter, setter in _SETTINGS]
        self._flags = [(owner, name, getattr(owner, name)) for owner, names in _FLAGS for name in names]

    def restore(self) -> None:
        """Put everything back, and free what the last job left in memory."""
        with contextlib.suppress(OSError):           # the folder was removed
            os.chdir(self._folder)
        if dict(os.environ) != self._environ:
            os.environ.clear()
            os.environ.update(self._environ)
        sys.path[:], sys.argv[:] = self._path, self._argv
        warnings.filters[:] = self._filters
        warnings._filters_mutated()
        self._restore_torch()
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        random.seed(0)
        gc.collect()
        if torch.cuda.is_available():
            with contextlib.suppress(RuntimeError):      # an error of the last job's left it unusable
                torch.cuda.empty_cache()

    def _restore_torch(self) -> None:
        torch.set_default_device(None)
        for setter, value in self._settings:
            setter(value)
        for owner, name, value in self._flags:
            setattr(owner, name, value)
        for device in ("cpu", "cuda"):
            torch.set_autocast_enabled(device, False)
