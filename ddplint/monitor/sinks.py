"""Where a monitor's results go: logging, a file of JSON lines, TensorBoard."""

import logging
from typing import Any

from ddplint.evidence import NONE, NONFINITE, ZERO, Evidence
from ddplint.evidence_file import to_json
from ddplint.monitor.window import Sampled
from ddplint.render.wording import one_line, place_of, spot
from ddplint.report import Finding

log = logging.getLogger("ddplint.monitor")
LEVELS = {"error": logging.ERROR, "warning": logging.WARNING}


def tell(finding: Finding) -> None:
    place = spot(place_of(finding)) if finding.cause and finding.cause.place else ""
    text = f"{finding.severity} [{finding.rule}] {one_line(finding)}" + (f" at {place}" if place else "")
    log.log(LEVELS.get(finding.severity, logging.INFO), "%s", text + (f"; do: {finding.remedy}" if finding.remedy else ""))


class Lines:
    """JSON lines, each of them evidence; ``ddplint evidence=FILE`` judges the whole file."""

    def __init__(self, path: str):
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (closed by close)

    def write(self, evidence: Evidence) -> None:
        self._file.write(to_json(evidence) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class Scalars:
    """TensorBoard scalars, to a folder or to a writer that the loop already has."""

    def __init__(self, target: Any):
        self._own = isinstance(target, str)
        self._writer = _writer(target) if self._own else target

    def write(self, sampled: Sampled, findings: int) -> None:
        if self._writer is None:
            return
        readings = [reading for reading in sampled.readings if reading is not None]
        use = "".join(reading.use for reading in readings)
        values = {"without_gradient": use.count(NONE), "zero_gradient": use.count(ZERO), "nonfinite_gradient": use.count(NONFINITE),
                  "largest_gradient": max((size for reading in readings for size in reading.sizes), default=0.0),
                  "findings": findings}
        values |= {f"term/{name}": value for name, value in zip(sampled.term_names, readings[0].terms if readings else (),
                                                                strict=False) if value is not None}
        for name, value in values.items():
            self._writer.add_scalar(f"ddplint/{name}", value, sampled.step)

    def close(self) -> None:
        if self._own and self._writer is not None:
            self._writer.close()


def _writer(folder: str) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        log.warning("tensorboard is not installed: no scalars are written to %s", folder)
        return None
    return SummaryWriter(folder)
