"""The house's rules, run by the one test command: lints, and imports that run one way."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as main; main(['--no-cache'])"


@pytest.mark.parametrize("command", [
    pytest.param(["-m", "ruff", "check", "--no-cache", "."], id="ruff"),
    pytest.param(["-c", LINT_IMPORTS], id="import-linter"),
])
def test_style(command):
    ended = subprocess.run([sys.executable, *command], cwd=ROOT, text=True, capture_output=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
