"""The same spec gives the same report, byte for byte: in one process, in another, whatever the hash seed."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from ddplint.cli import main

for run in range(4):
    main(["+model=dynamic", f"report.json={run}.json", "report.terminal=false", "run.device=cpu"])
"""


@pytest.mark.slow
def test_twenty_runs_under_five_hash_seeds_are_equal(project):
    """Findings with causes, of branches that differ between ranks and steps, in every scenario of a shipped model."""
    texts = set()
    for seed in range(5):
        environment = {**project.environment(), "PYTHONHASHSEED": str(seed)}
        ended = subprocess.run([sys.executable, "-c", SCRIPT], cwd=project.folder, env=environment, text=True,
                               capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        for run in range(4):
            texts.add((project.folder / f"{run}.json").read_text())
            (project.folder / f"{run}.json").unlink()
    assert len(texts) == 1
