"""Jobs that go wrong in a rank, as users' programs do. Each takes what gang.py gives a job."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist


def together(send, step=0):
    send("phase", ("forward", step))
    total = torch.ones(2)
    dist.all_reduce(total)
    return total.tolist()


def healthy(spec, rank, world_size, device, send):
    send("sum", together(send))
    return True


def phases(spec, rank, world_size, device, send):
    for step in range(4):
        send("phase", ("forward", step))
        dist.all_reduce(torch.ones(1000))
        send("phase", ("backward", step))
        dist.all_reduce(torch.ones(1000))
    send("phase", ("done", 3))
    return True


def count(spec, rank, world_size, device, send, words):
    print("not on the terminal")
    print("nor this", file=sys.stderr)
    send("said", (rank, world_size, str(device), words))
    return True


def raise_on(spec, rank, world_size, device, send, ranks):
    together(send)
    send("phase", ("backward", 1))
    if rank in ranks:
        raise ValueError("the user's own words")
    dist.all_reduce(torch.ones(1))
    return True


def leave(spec, rank, world_size, device, send, how):
    """Rank 1 goes away in one of several ways, while rank 0 waits for it."""
    together(send)
    send("phase", ("terms", 1))
    if rank == 1:
        HOW[how]()
    dist.all_reduce(torch.ones(1))
    return True


def endless():
    while True:
        pass


def sleep():
    time.sleep(1000)


def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def c_call():
    """A C call that keeps the GIL and never returns."""
    import ctypes
    ctypes.PyDLL(None).sleep(1000)


HOW = {
    "sys.exit": sys.exit,
    "SystemExit(0)": lambda: sys.exit(0),
    "sys.exit(text)": lambda: sys.exit("no data"),
    "os._exit(0)": lambda: os._exit(0),
    "os._exit(3)": lambda: os._exit(3),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "abort": lambda: os.abort(),
    "null pointer": lambda: __import__("ctypes").string_at(0),
    "endless": endless,
    "sleep": sleep,
    "deadlock": deadlock,
    "c_call": c_call,
}


def skip_collective(spec, rank, world_size, device, send):
    """Rank 0 leaves the others in a collective, and is done."""
    together(send)
    send("phase", ("backward", 0))
    if rank > 0:
        dist.all_reduce(torch.ones(1))
    send("phase", ("done", 0))
    return True


def different_collectives(spec, rank, world_size, device, send):
    together(send)
    if rank == 0:
        dist.barrier()
    other = torch.ones(1)
    dist.broadcast(other, src=1 - rank) if rank == 0 else dist.recv(other, src=0)
    return True


def slow(spec, rank, world_size, device, send, seconds):
    """Every phase takes a while; together they take longer than the time-out."""
    for step in range(8):
        send("phase", ("forward", step))
        threading.Event().wait(seconds if rank == 0 else 0)
        dist.barrier()
    return True


def close_descriptors(spec, rank, world_size, device, send, which):
    if which == "stderr":
        os.close(2)
        send("sum", together(send))
    else:
        os.closerange(3, 200)
        send("sum", 0)
    return True


def print_much(spec, rank, world_size, device, send, megabytes):
    for _ in range(megabytes):
        sys.stdout.write("x" * 1_000_000)
    os.write(1, b"\xff\x00 binary")
    sys.stdout.write("\nthe last line\n")
    send("sum", together(send))
    return True


def spawn(spec, rank, world_size, device, send, daemon):
    """Starts a process that outlives the rank; with ``daemon`` it leaves the rank's session and its parent."""
    if daemon:
        command = "import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(1000)"
        child = subprocess.Popen([sys.executable, "-S", "-c", command], stdout=subprocess.PIPE, text=True)
        send("pid", int(child.stdout.readline()))
    else:
        send("pid", subprocess.Popen(["sleep", "1000"]).pid)
    return True


def disturb(spec, rank, world_size, device, send):
    """Changes what outlives a job."""
    os.chdir("/")
    os.environ["DDPLINT_TEST"] = "changed"
    sys.path.insert(0, "/nowhere")
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(True)
    torch.set_default_device("meta")
    sys.stdout = io.StringIO()
    signal.setitimer(signal.ITIMER_REAL, 1000)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return True


def look(spec, rank, world_size, device, send):
    send("state", {
        "cwd": os.getcwd(), "env": os.environ.get("DDPLINT_TEST"), "path": "/nowhere" in sys.path,
        "dtype": str(torch.get_default_dtype()), "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(), "anomaly": torch.is_anomaly_enabled(),
        "device": str(torch.ones(1).device), "stdout": sys.stdout is sys.__stdout__, "timer": signal.getitimer(signal.ITIMER_REAL)[0],
        "interrupt": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    })
    return True


def own_group(spec, rank, world_size, device, send):
    dist.init_process_group("gloo")


def destroy_group(spec, rank, world_size, device, send):
    together(send)
    dist.destroy_process_group()
    return True


def leftover(spec, rank, world_size, device, send):
    """Rank 0 leaves an asynchronous collective behind that no one else enters."""
    if rank == 0:
        dist.all_reduce(torch.ones(1), async_op=True)
    return True


def poison(spec, rank, world_size, device, send):
    """Breaks the process group of the next job."""
    dist.destroy_process_group = endless if rank == 0 else dist.destroy_process_group
    return True


def workers(spec, rank, world_size, device, send, fail):
    """A loader with worker processes; one of its items may raise."""
    data = _Data(fail)
    for batch in torch.utils.data.DataLoader(data, batch_size=2, num_workers=2):
        send("batch", batch.tolist())
    return True


class _Data(torch.utils.data.Dataset):
    def __init__(self, fail):
        self.fail = fail

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == self.fail:
            raise RuntimeError("item cannot be read")
        return index


def listening(spec, rank, world_size, device, send):
    """The addresses on which this process listens."""
    together(send)
    inodes = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1].split(":")[0])
    send("listening", found)
    return True


def pids(spec, rank, world_size, device, send):
    send("pid", os.getpid())
    send("start method", multiprocessing.get_start_method())
    return True


def wait_forever(spec, rank, world_size, device, send, how):
    send("pid", os.getpid())
    HOW[how]()


def out_of_memory(spec, rank, world_size, device, send):
    """A rank under an address-space limit asks for more."""
    import resource
    together(send)
    if rank == 0:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), size + (64 << 20)))
        torch.ones(1 << 28)
    dist.all_reduce(torch.ones(1))
    return True


def half_a_message(spec, rank, world_size, device, send):
    """Rank 0 begins to tell something, and is stopped."""
    together(send)
    if rank == 0:
        os.write(send.jobs.fileno(), (1_000_000).to_bytes(4, "big") + b"no more")
        os.kill(os.getpid(), signal.SIGSTOP)
    return True


def unpicklable(spec, rank, world_size, device, send):
    send("thing", _Data(0))
    return True


def alone(spec, send, words):
    send("said", (words, dist.is_initialized()))
    return True


def alone_failing(spec, send, how):
    send("phase", ("build", None))
    HOW[how]()
