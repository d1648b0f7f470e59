"""What the tests share: a user's project in an empty folder, and the command line run inside this process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")        # tests side by side: threads that wait for each other's turn cost more than they give

from ddplint.cli import main
from ddplint.evidence import Evidence
from ddplint.record.kept import keep_ranks

TABLES = pytest.StashKey[list[str]]()
"""Lines that are printed after the tests: how the corpora were judged."""
ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Ended:
    status: int
    out: str
    err: str


@dataclass
class Project:
    """An empty folder that is the current one; ``ddplint(...)`` runs there."""

    folder: Path
    capsys: pytest.CaptureFixture

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def ddplint(self, *argv: str) -> Ended:
        self.capsys.readouterr()
        status = main(list(argv))
        return Ended(status, *self.capsys.readouterr())

    def environment(self) -> dict[str, str]:
        """For a process of its own that finds this checkout's package."""
        return {**os.environ, "PYTHONPATH": str(ROOT)}

    def process(self, *argv: str) -> Ended:
        """``python -m ddplint`` here, as a process of its own."""
        ended = subprocess.run([sys.executable, "-m", "ddplint", *argv], cwd=self.folder, env=self.environment(),
                               text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=200)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def files(self) -> list[str]:
        """Everything in the folder but what Python caches."""
        found = [path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*")]
        return sorted(path for path in found if "__pycache__" not in path)


@pytest.fixture(autouse=True)
def as_by_hand() -> Iterator[None]:
    """In CI too: without progress in lines, annotations, or a launch around the tests."""
    with pytest.MonkeyPatch.context() as patch:         # its own: a test's is undone before the fixtures that it came after
        for variable in ("CI", "GITHUB_ACTIONS", "RANK", "WORLD_SIZE", "HYDRA_FULL_ERROR"):
            patch.delenv(variable, raising=False)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:       # a shell starts jobs in the background so
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield


@pytest.fixture(scope="module")
def kept_ranks() -> Iterator[None]:
    """The same ranks for all lints of a test file that never changes a module's file."""
    with keep_ranks():
        yield


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    yield Project(tmp_path, capsys)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]           # a house rule's module: the next project may have one of the same name


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> list:
    """The specs that the command line would have recorded; nothing is run."""
    seen = []
    monkeypatch.setattr("ddplint.cli._record", lambda spec: seen.append(spec) or Evidence({"model": "none"}))
    return seen


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLES] = []
    config.option.loadscopereorder = False      # -n: files are given out in the order below, not by their number of tests


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast ones first; side by side (-n) the long files begin, so that no process is left with one of them at the end."""
    long = [item for item in items if any(item.get_closest_marker(name) for name in ("corpus", "zoo", "slow"))]
    files = {item.path for item in long}
    parted = [item for item in items if item.path in files], [item for item in items if item.path not in files]
    side_by_side = hasattr(config, "workerinput")
    items[:] = [*parted[0], *parted[1]] if side_by_side else [*parted[1], *parted[0]]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):         # one of several processes (pytest -n): the first prints
        session.config.workeroutput["tables"] = session.config.stash[TABLES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    node.config.stash[TABLES] += getattr(node, "workeroutput", {}).get("tables", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash[TABLES]:
        terminalreporter.write_line(line)
