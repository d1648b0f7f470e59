"""A launch over two hosts (network namespaces with addresses and names of their own), and Slurm's launcher run locally."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.excerpts import assert_shown, slurm_line

MODEL = """
import fcntl, os, socket, struct
from torch import nn


class Net(nn.Module):
    def __init__(self, cut=False):
        super().__init__()
        self.cut, self.body, self.idle = cut, nn.Linear(8, 2), nn.Linear(2, 2)

    def forward(self, x):
        if self.cut and os.environ["RANK"] in ("2", "3"):        # by both: neither can end before SIOCSIFFLAGS has cut it
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", os.environ["GLOO_SOCKET_IFNAME"].encode(), 0))
        return self.body(x)
"""
SPEC = """# @package _global_
model: {_target_: net.Net}
loss: {terms: {ce: {_target_: torch.nn.CrossEntropyLoss, args: [output, batch.y]}}}
scenario:
  a: {batch: {x: {shape: [4, 8]}, y: {shape: [4], integers: [0, 2]}}}
  b: {batch: {x: {shape: [2, 8]}, y: {shape: [2], integers: [0, 2]}}}
"""
NAMES = tuple(f"ddplint-{side}-{os.getpid()}" for side in "ab")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
pytestmark = pytest.mark.slow


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Two hosts joined by a cable; none where this user may not make network namespaces."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs iproute2 and util-linux")
    try:
        ip("netns", "add", NAMES[0])
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this user cannot make network namespaces: {error.stderr.decode().strip()}")
    try:
        ip("netns", "add", NAMES[1])
        ip("link", "add", "cable", "netns", NAMES[0], "type", "veth", "peer", "name", "cable", "netns", NAMES[1])
        for name, address in zip(NAMES, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.fixture
def mine(project):
    project.write("net.py", MODEL)
    project.write("configs/model/mine.yaml", SPEC)
    return project


def start(project, host: int, *argv: str) -> subprocess.Popen:
    """Two ranks on a host, as torchrun starts them there."""
    launch = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=2", f"--node-rank={host}",
              f"--master-addr={ADDRESSES[0]}", "--master-port=29511", "-m", "ddplint", "+model=mine", *argv]
    named = ["unshare", "--uts", "sh", "-c", f'hostname node-{host} && exec "$@"', "sh", sys.executable, *launch]
    return subprocess.Popen(["ip", "netns", "exec", NAMES[host], *named], cwd=project.folder, text=True,
                            env={**project.environment(), "GLOO_SOCKET_IFNAME": "cable"},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def launched(project, *argv: str) -> list[tuple[str, str]]:
    """(stdout, stderr) of the launch on each host."""
    agents = [start(project, host, *argv, "report.json=-", "report.terminal=false") for host in (0, 1)]
    try:
        return [agent.communicate(timeout=200) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()


def test_two_hosts_report_as_one(mine, hosts):
    (out, _), (other, _) = launched(mine)
    report = json.loads(out)
    assert other == ""
    assert report["usage"]["idle.weight"] == {"a": [0] * 4, "b": [0] * 4}
    assert [(f["rule"], f["ranks"]) for f in report["findings"]] == [("unused-parameter", [0, 1, 2, 3])]
    assert mine.files() == ["configs", "configs/model", "configs/model/mine.yaml", "net.py"]


def test_a_host_that_is_cut_off_is_named(mine, hosts):
    """In the middle of a step its cable is cut: both sides come to their end, and rank 0 tells which host is gone."""
    (out, _), (_, other) = launched(mine, "++model.cut=true", "run.timeout=15", "report.evidence=seen.json")
    finding = next(f for f in json.loads(out)["findings"] if f["rule"] == "rank-failure")
    assert finding["message"] == "run: ranks 2 and 3 left the launch: host 'node-1' is down or cut off, or has ended it"
    assert (finding["scenarios"], finding["ranks"]) == (["a", "b"], [2, 3])
    assert [s["ddp"]["outcome"] for s in json.loads(out)["scenarios"]] == ["crashed", "crashed"]
    assert "ddplint: error: the store of the launch has not answered rank 3 on host 'node-1' for 50 s" in other.splitlines()
    assert_shown(__file__, mine.ddplint("evidence=seen.json").out)


@pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="needs the extra [slurm]")
def test_the_tasks_of_a_slurm_job_are_its_ranks(mine):
    """Two tasks, whatever run.world_size says; a job of the sweep per scenario, one report."""
    ended = mine.process("-m", "+model=mine", "run.world_size=1", "run.seed=1,2", "report.json=-", "report.terminal=false",
                         "hydra/launcher=submitit_local", "hydra.launcher.tasks_per_node=2", "hydra.launcher.timeout_min=3")
    assert (ended.status, ended.err) == (1, "")
    report = json.loads(ended.out)
    assert report["usage"]["idle.weight"] == {name: [0, 0] for name in ("a", "b", "a#2", "b#2")}
    assert mine.files() == ["configs", "configs/model", "configs/model/mine.yaml", "net.py"]


@pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="needs the extra [slurm]")
def test_the_slurm_line_of_the_readme_is_what_hydra_takes(mine):
    """Sent to a queue it needs one: composed for it here."""
    line = [word for word in slurm_line() if word != "-m" and not word.startswith("+scenario=")]     # --cfg takes no sweep
    ended = mine.process(*line, "--cfg", "hydra", "-p", "hydra.launcher")
    assert (ended.status, ended.err) == (0, "")
    assert [line for line in ended.out.splitlines() if line.startswith(("nodes", "tasks_per_node", "gpus_per_node"))] == [
        "gpus_per_node: 8", "tasks_per_node: 8", "nodes: 2"]


def test_a_sweep_in_a_launch(mine):
    """Each job of the sweep has keys of its own in the launch's store."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "ddplint", "-m", "+model=mine",
               "run.seed=1,2", "report.json=-", "report.terminal=false"]
    ended = subprocess.run([sys.executable, *command], cwd=mine.folder, env=mine.environment(),
                           text=True, capture_output=True, timeout=200, check=False)
    assert json.loads(ended.stdout)["usage"]["idle.weight"] == {name: [0, 0] for name in ("a", "b", "a#2", "b#2")}
    assert mine.files() == ["configs", "configs/model", "configs/model/mine.yaml", "net.py"]
