"""The fixture ``ddplint``, in pytest runs of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from ddplint.evidence import Evidence, Model, Parameter, RankSeen, ScenarioSeen, StepSeen
from ddplint.evidence_file import to_json

ROOT = Path(__file__).parent.parent


@pytest.fixture
def pytest_run(tmp_path):
    """Run a test file beside two files of evidence: ``used.json`` and ``unused.json``."""
    model = Model("Net", [Parameter("head.weight", [2], "float32", True, "head", groups=1)])
    for name, use in (("used", "1"), ("unused", ".")):
        ranks = [RankSeen(rank, steps=[StepSeen(step, "done", use=use) for step in range(3)]) for rank in range(2)]
        spec = {"model": "net.Net", "world_size": 2, "steps": 3, "engine": "local", "ddp": {"find_unused_parameters": True}}
        (tmp_path / f"{name}.json").write_text(to_json(Evidence(spec, [model], [ScenarioSeen("a", 0, ranks)])))

    def run(test):
        (tmp_path / "test_it.py").write_text(test)
        options = ["-p", "ddplint.pytest_plugin"] if not _installed() else []
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"],
                              cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True,
                              text=True, timeout=120, check=False)
    return run


def _installed():
    from importlib.metadata import entry_points
    return any(entry.value == "ddplint.pytest_plugin" for entry in entry_points(group="pytest11"))


def test_a_failing_lint_fails_with_the_report(pytest_run):
    ended = pytest_run("def test_ddp(ddplint):\n    ddplint('evidence=unused.json')\n")
    assert ended.returncode == 1
    assert "ddplint evidence=unused.json ended with exit status 1" in ended.stdout
    assert "error [unused-parameter] head" in ended.stdout
    assert "Traceback" not in ended.stdout


def test_a_clean_lint_passes_and_returns_the_report(pytest_run):
    ended = pytest_run("def test_ddp(ddplint):\n    assert 'exit status 0' in ddplint('evidence=used.json')\n")
    assert ended.returncode == 0, ended.stdout


def test_a_mistake_is_the_message(pytest_run):
    ended = pytest_run("def test_ddp(ddplint):\n    ddplint('evidence=nowhere.json')\n")
    assert ended.returncode == 1 and "nowhere.json cannot be read" in ended.stdout


def test_a_test_that_uses_hydra_itself(pytest_run):
    ended = pytest_run("""
from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

def test_around(ddplint):
    with initialize_config_module("ddplint.configs", version_base=None):
        before = compose("ddplint", ["run.steps=7"])
        ddplint("evidence=used.json")
        assert compose("ddplint", ["run.steps=7"]) == before

def test_after(ddplint):
    ddplint("evidence=used.json")
    assert not GlobalHydra.instance().is_initialized()
""")
    assert ended.returncode == 0, ended.stdout


def test_the_plugin_itself_imports_nothing_heavy():
    code = "import sys, ddplint.pytest_plugin; sys.exit(str({'torch', 'hydra', 'rich', 'jinja2'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr.strip() == "set()"
