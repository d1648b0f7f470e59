"""A small healthy program that fails where the environment variable FAULT says: ``place:how:ranks``, e.g. ``loss:raise:1``.

Places: import, build, wrap, batch, forward, loss, backward, optimizer. Only in the scenario called ``bad`` (from batch
on); ``ranks`` is a list of digits.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

now = {"scenario": "bad", "step": 0}


def trip(place):
    where, how, ranks = os.environ.get("FAULT", "::").split(":")
    if where == place and os.environ["RANK"] in ranks and now["scenario"] == "bad" and now["step"] == 1:
        HOW[how]()


def raise_error():
    raise ValueError("the user's own words")


def raise_escapes():
    raise ValueError("\x1b[31mred\x1b[0m \x07bell \u202eturned\rback")


def endless():
    while True:
        pass


def c_call():
    import ctypes
    ctypes.PyDLL(None).sleep(1000)


def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def out_of_memory():
    import resource
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), size + (64 << 20)))
    torch.ones(1 << 28)


def stop_iteration():
    next(iter(()))


def reach():
    """Tells the test that this rank has come here, and stays."""
    with open(os.environ["REACHED"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(1000)


def null_pointer():
    import ctypes
    ctypes.string_at(0)


def say_and_leave():
    print("no data left", flush=True)
    os._exit(3)


def noise_and_leave():
    for _ in range(100):
        os.write(1, bytes(range(256)) * 4096)
    say_and_leave()


HOW = {
    "say": say_and_leave,
    "noise": noise_and_leave,
    "raise": raise_error,
    "escapes": raise_escapes,
    "sys.exit": sys.exit,
    "exit0": lambda: sys.exit(0),
    "_exit0": lambda: os._exit(0),
    "_exit3": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segv": null_pointer,
    "abort": os.abort,
    "memory": out_of_memory,
    "endless": endless,
    "sleep": lambda: time.sleep(1000),
    "deadlock": deadlock,
    "c_call": c_call,
    "collective": lambda: dist.all_reduce(torch.ones(1)),
    "reach": reach,
    "slow": lambda: threading.Event().wait(0.7),
    "stop": stop_iteration,
    "group": lambda: dist.init_process_group("gloo"),
    "subprocess": lambda: subprocess.Popen(["sleep", "1000"]),
    "chdir": lambda: os.chdir("/"),
    "environ": os.environ.clear,
    "rng": lambda: torch.manual_seed(os.getpid()),
    "close2": lambda: os.close(2),
    "print": lambda: [sys.stdout.write("x" * 1_000_000) for _ in range(100)],
    "binary": lambda: os.write(1, bytes(range(256))),
    "stdout": lambda: setattr(sys, "stdout", None),
    "thread": lambda: threading.Thread(target=endless, daemon=True).start(),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        now.update(step=1, scenario="bad")
        trip("build")
        self.layer = nn.Linear(4, 2)
        if os.environ.get("ODD_NAMES"):
            self.add_module("\x1b[31mred\rback", nn.Linear(1, 1))
        now.update(step=0)

    @property
    def _ddp_params_and_buffers_to_ignore(self):
        """DDP looks it up while it wraps."""
        now.update(step=1, scenario="bad")
        trip("wrap")
        now.update(step=0)
        return []

    def __deepcopy__(self, memo):
        return self

    def forward(self, x):
        trip("forward")
        return _Backward.apply(self.layer(x))


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        trip("backward")
        return gradient


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        trip("optimizer")
        return super().step(closure)


def batch(scenario, step):
    now.update(scenario=scenario, step=step)
    trip("batch")
    return torch.randn(3, 4)


def loader(scenario, workers, fail=None, length=8):
    """Item ``fail`` raises; where it is negative, the worker process that reads it dies."""
    now.update(scenario=scenario, step=1)
    return torch.utils.data.DataLoader(_Data(fail, length), batch_size=2, num_workers=workers)


def uneven(scenario, rank):
    return loader(scenario, 0, length=8 if rank else 4)


class _Data(torch.utils.data.Dataset):
    def __init__(self, fail, length):
        self.fail, self.length = fail, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.fail:
            raise RuntimeError("item cannot be read")
        if self.fail is not None and index == -self.fail:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((4,), float(index))


def loss(output, batch):
    trip("loss")
    return {"square": output.square().mean()}


now.update(step=1)
trip("import")
now.update(step=0)
