"""What many lints in one process leave behind: nothing that grows. And what the ranks listen on: loopback."""

import json
import os
import threading
from pathlib import Path

import pytest

from ddplint import Spec, lint
from ddplint.compose import parse
from ddplint.record import forkserver, processes
from ddplint.record.kept import keep_ranks
from ddplint.rules import catalogue

NET = """
import os
from pathlib import Path
import torch
from torch import nn


class Net(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.unused = nn.Linear(2, 2)


def loss(outputs, batch):
    if os.environ.get("SOCKETS"):
        inodes = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
        with open(os.environ["SOCKETS"], "a") as file:
            for table in ("tcp", "tcp6", "udp", "udp6"):
                for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                    parts = line.split()
                    if f"socket:[{parts[9]}]" in inodes:
                        file.write(f"{table} {parts[1]} {parts[2]}\\n")
    return {"square": outputs.square().mean()}
"""


@pytest.fixture
def spec(project) -> Spec:
    """A tiny program with a finding; where its cause is looked for, all processes of a lint are started."""
    project.write("tiny_net.py", NET)
    sections = {"model": {"_target_": "tiny_net.Net"}, "loss": {"terms": {"_target_": "tiny_net.loss"}},
                "scenario": {"a": {"batch": {"shape": [3, 2]}}}, "run": {"steps": 2, "device": "cpu", "timeout": 60.0}}
    project.write("configs/model/tiny.yaml", f"# @package _global_\n{json.dumps(sections)}")
    sections["run"]["causes"] = False
    return parse(sections, folder=str(project.folder), installed=list(catalogue()))


def held() -> dict[str, int]:
    server = forkserver.server_pid()
    return {"descriptors": len(os.listdir("/proc/self/fd")), "of the server": len(os.listdir(f"/proc/{server}/fd")),
            "threads": threading.active_count(), "processes": len(processes.descendants([server]))}


def resident(pid: int | str = "self") -> float:
    """MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


@pytest.mark.slow
def test_two_hundred_lints_in_one_process_leave_nothing_that_grows(spec, project):
    """Through the command line's own function, which pytest users call as well, and from a script."""
    for _ in range(5):
        lint(spec)
        project.ddplint("+model=tiny")
    before, memory, server = held(), resident(), resident(forkserver.server_pid())
    files, said = project.files(), set()
    for _ in range(20):
        ended = project.ddplint("+model=tiny")      # by a gang of its own
        said.add((ended.status, ended.out, ended.err))
        with keep_ranks():                          # by one and the same
            for _ in range(9):
                lint(spec)
    (status, out, err), = said
    assert (status, err) == (1, "") and "[unused-parameter]" in out
    assert held() == before
    assert before["processes"] == 0
    assert project.files() == files
    assert resident() - memory < 16
    assert resident(forkserver.server_pid()) - server < 16


def test_every_socket_of_the_ranks_is_on_loopback(spec, project, monkeypatch):
    monkeypatch.setenv("SOCKETS", str(project.folder / "sockets"))
    lint(spec)
    sockets = [line.split() for line in (project.folder / "sockets").read_text().splitlines()]
    assert {table for table, _, _ in sockets} <= {"tcp", "tcp6"} and sockets
    ends = {end.split(":")[0] for _, own, peer in sockets for end in (own, peer)}
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    nobody = {"00000000", "0" * 32}         # the far end of a socket that listens
    assert ends <= loopback | nobody
    assert all(own.split(":")[0] in loopback for _, own, _ in sockets)
