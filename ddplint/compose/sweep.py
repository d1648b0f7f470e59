"""What each Hydra job leaves behind, and how the launching process collects it.

A job of a sweep may run in another process, even on another machine: it writes its result into its folder of the
sweep, and the launching process, told the folder by a Hydra callback, reads all of them and removes the folder.
"""

import contextlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode

from ddplint.evidence import Evidence
from ddplint.evidence_file import from_plain, to_plain
from ddplint.launch import is_reporter
from ddplint.spec import Judgement, ReportOptions

FILE = "ddplint.json"


@dataclass
class JobResult:
    """One Hydra job: its evidence, or the problem that kept it from any."""

    evidence: Evidence | None = None
    judgement: Judgement = field(default_factory=Judgement)
    report: ReportOptions = field(default_factory=ReportOptions)
    problem: str | None = None
    traceback: str = ""
    interrupted: bool = False


_results: list[JobResult] = []
_sweep: list[Path] = []


class NoteSweepFolder(Callback):
    """Runs in the launching process (configs/hydra/callbacks/ddplint.yaml)."""

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        _sweep[:] = [Path(config.hydra.sweep.dir).absolute()]


def in_sweep() -> bool:
    return HydraConfig.get().mode is RunMode.MULTIRUN


def leave(result: JobResult) -> None:
    """Called at the end of a job, wherever it runs."""
    if not in_sweep() or _sweep:            # the launching process itself
        _results.append(result)
        return
    if not is_reporter():                   # a job of several tasks
        return
    folder = Path(HydraConfig.get().runtime.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(to_plain(result)), encoding="utf-8")


def start() -> None:
    _results.clear()
    _sweep.clear()


def collect() -> list[JobResult]:
    """Every result that was left since ``start``, in the order of the jobs."""
    for folder in _sweep:
        for file in sorted(folder.glob(f"*/{FILE}"), key=lambda path: (len(path.parent.name), path.parent.name)):
            body = json.loads(file.read_text(encoding="utf-8"))
            _results.append(from_plain(JobResult, body, str(file)))
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.parent.rmdir()           # only where it is empty
    _sweep.clear()
    return list(_results)
