"""Counts the steps of a wrapped model, samples some of them, and tells what the rules find."""

import os
import re
from types import TracebackType
from typing import Any, Self

import torch
from torch.nn.parallel import DistributedDataParallel

from ddplint.check import check
from ddplint.evidence import FROZEN, NONE, UNSEEN, Failure
from ddplint.evidence_file import from_plain, to_plain
from ddplint.monitor import reading as readings
from ddplint.monitor.exchange import Exchange, under_join
from ddplint.monitor.reading import Reading
from ddplint.monitor.sample import Sample
from ddplint.monitor.sinks import Lines, Scalars, log, tell
from ddplint.monitor.window import Sampled, Window
from ddplint.record.blame import lost_peer
from ddplint.record.snapshot import Since, snapshot
from ddplint.record.source import adopt, set_folder, user_frames
from ddplint.render.findings import fingerprint
from ddplint.report import Finding, Report
from ddplint.spec import Judgement, RuleSetting

FIRST = 3
"""The first steps are all sampled: most faults are there from the start."""
PATIENCE, PATIENCE_AFTER_ERROR = 10.0, 2.0
"""Seconds that rank 0 waits at the end for the other ranks' last words."""
UNFINISHED = "expected to have finished reduction"
QUIET = {"find-unused-parameters-needless": RuleSetting(severity="off")}
"""A window of a running job is no ground for advice on its launch."""


class Monitor:
    """``watch(ddp)``; a context manager. Its ``findings`` are those told so far (rank 0's only)."""

    def __init__(self, ddp: DistributedDataParallel, every: int = 100, *, window: int = 8, steps: int | None = None,
                 json: str | None = None, tensorboard: Any = None, judgement: Judgement | None = None, name: str = "training"):
        """``window`` samples are judged together; ``steps`` is the length of the loop, where it is known: the last step
        is sampled then; ``json`` is a file for JSON lines, ``tensorboard`` a folder or a SummaryWriter.
        """
        if not isinstance(ddp, DistributedDataParallel):
            raise TypeError(f"watch() takes the model that DistributedDataParallel returned, not a {type(ddp).__name__}")
        if every < 1:
            raise ValueError(f"every is {every}; expected a whole number of at least 1")
        set_folder(os.getcwd())
        adopt(ddp.module)
        self.ddp, self.every, self.steps = ddp, every, steps
        self.step, self.findings = -1, []
        self._boundary, self._closed = True, False
        self._sample: Sample | None = None
        self._term_names: list[str] = []
        self._exchange, self._since = Exchange(ddp), Since(ddp.module)
        model = snapshot(ddp.module)
        self._trainable = {p.name: p.trainable for p in model.parameters}
        self._window = Window(model, _spec(ddp, model.type, self._exchange.size), name, window)
        self._judgement = judgement or Judgement(rules=QUIET)
        self._told: set[str] = set()
        self._attach()
        self._lines = Lines(json) if json and self._reports else None
        self._scalars = Scalars(tensorboard) if tensorboard is not None and self._reports else None

    @property
    def _reports(self) -> bool:
        return self._exchange.rank == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(error)

    def terms(self, **terms: torch.Tensor) -> None:
        """Name the parts of the loss, before backward(); free between samples."""
        if self._sample is not None:
            self._term_names += [name for name in terms if name not in self._term_names]
            self._sample.add_terms(terms)

    def report(self) -> Report:
        """The window judged now."""
        return check(self._window.evidence(), self._judgement)

    # ------------------------------------------------------------------ counting

    def _attach(self) -> None:
        self._hooks = [self.ddp.register_forward_pre_hook(self.forward_begins),
                       self.ddp.register_forward_hook(self._forward_ended)]

    def _detach(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def forward_begins(self, ddp: DistributedDataParallel, args: Any) -> None:
        """A step begins with the first forward after one that DDP was armed for."""
        if not ddp.training or not torch.is_grad_enabled():
            return
        awaits_backward = self._sample is not None and not self._sample.backwards
        if self._boundary and not awaits_backward:
            self._finish()
            self.step, self._boundary = self.step + 1, False
            if self._due():
                self._sample = Sample(ddp, self.step, self._trainable)
        self._boundary = self._boundary or ddp.require_backward_grad_sync

    def _due(self) -> bool:
        return self.step < FIRST or self.step % self.every == 0 or self.step + 1 == self.steps

    def _forward_ended(self, ddp: DistributedDataParallel, args: Any, outputs: Any) -> None:
        if self._sample is not None and ddp.training and torch.is_grad_enabled():
            self._sample.add_outputs(outputs)

    # ------------------------------------------------------------------ a sample

    def _finish(self) -> None:
        """The sampled step is over on every rank that comes here: read, exchange, judge."""
        sample, self._sample = self._sample, None
        if sample is None:
            return
        own, compared = self._read(sample), not under_join(self.ddp)
        vector = own.vector() if own else [0.0] * readings.length(len(self._trainable))
        vectors = self._exchange.gather(vector) if compared else [vector]
        if self._reports:
            seen = [readings.from_vector(v, len(self._trainable)) for v in vectors]
            self._take(self._sampled(sample, seen + [None] * (self._exchange.size - len(seen)), compared))

    def _read(self, sample: Sample) -> Reading | None:
        """None where reading fails: training goes on, and the collective is entered all the same."""
        sample.stop()
        try:
            return sample.read(self._term_names)
        except Exception:  # noqa: BLE001 (told; the training goes on)
            log.warning("step %d could not be read", sample.step, exc_info=True)
            return None

    def _sampled(self, sample: Sample, seen: list[Reading | None], compared: bool) -> Sampled:
        sampled = Sampled(sample.step, seen, self._term_names, sample.weights_on_host(), sample.graph, compared=compared)
        sampled.changes = self._since.look(sample.step)
        if (cause := sample.first_nonfinite()) is not None:
            sampled.causes["gradient:"] = cause
        return sampled

    def _take(self, sampled: Sampled) -> None:
        """Judge the window with this sample, and tell what was not told before. Never ends the training."""
        try:
            self._window.add(sampled)
            report = self.report()
            for finding in report.findings:
                self._tell(finding)
            for rule, why in report.broken.items():
                log.warning("rule %s broke: %s", rule, why)
            if self._lines is not None:
                self._lines.write(self._window.line())
            if self._scalars is not None:
                self._scalars.write(sampled, len(report.open_findings))
        except Exception:  # noqa: BLE001 (told; the training goes on)
            log.warning("the sample of step %d could not be judged", sampled.step, exc_info=True)

    def _tell(self, finding: Finding) -> None:
        if finding.accepted is None and fingerprint(finding) not in self._told:
            self._told.add(fingerprint(finding))
            self.findings.append(finding)
            tell(finding)

    # ------------------------------------------------------------------ the end

    def close(self, error: BaseException | None = None) -> None:
        """Look at the last step too, which DDP never reports, and stop. ``error`` is what ended the loop, if any did."""
        if self._closed:
            return
        self._closed = True
        self._detach()
        sample, self._sample = self._sample, None
        own = self._last(sample, error)
        failure = self._failure(error)
        told = self._exchange.leave({"reading": to_plain(own) if own else None, "failure": to_plain(failure) if failure else None},
                                    PATIENCE_AFTER_ERROR if error else PATIENCE)
        if self._reports:
            self._conclude(sample, told)

    def _last(self, sample: Sample | None, error: BaseException | None) -> Reading | None:
        if sample is not None and sample.backwards:
            return self._read(sample)
        if sample is not None:
            sample.stop()
        missing = _missing(self.ddp, error)
        trainable = [name for name, wanted in self._trainable.items() if wanted]
        lacking = {trainable[i] for i in missing if i < len(trainable)}
        if not lacking or len(lacking) == len(trainable):       # all: the last forward had no backward, and needs none
            return None
        return readings.unread(max(self.step, 0), "".join(NONE if name in lacking else UNSEEN if wanted else FROZEN
                                                          for name, wanted in self._trainable.items()))

    def _failure(self, error: BaseException | None) -> Failure | None:
        if error is None:
            return None
        frames = user_frames(error)
        line = frames[-1].text if frames else ""
        phase = "backward" if ".backward(" in line else "optimizer" if ".step(" in line else "forward"
        failure = Failure("raised", phase, max(self.step, 0), type(error).__name__, str(error)[:4000], frames)
        failure.collateral = lost_peer(failure)
        return failure

    def _conclude(self, sample: Sample | None, told: dict[int, dict[str, Any]]) -> None:
        seen = [_plain(Reading, told.get(rank, {}).get("reading")) for rank in range(self._exchange.size)]
        failures = {rank: _plain(Failure, said["failure"]) for rank, said in told.items() if said["failure"]}
        if any(seen):                   # a rank that lost its peer says nothing of its own then
            failures = {rank: failure for rank, failure in failures.items() if not failure.collateral}
        if any(seen) or failures:
            whole = sample is not None and sample.backwards > 0
            sampled = self._sampled(sample, seen, all(seen)) if whole else Sampled(max(self.step, 0), seen, compared=False)
            sampled.failures = failures
            self._take(sampled)
        for sink in (self._lines, self._scalars):
            if sink is not None:
                sink.close()


def _missing(ddp: DistributedDataParallel, error: BaseException | None) -> list[int]:
    """DDP's own word on its last backward: the positions, among its parameters, of those without a gradient."""
    message = str(error) if error is not None else ""
    if error is None:
        try:
            ddp.reducer._check_reducer_finalized()
        except (RuntimeError, AttributeError) as unfinished:
            message = str(unfinished)
    found = re.search(r"did not receive grad for rank \d+: ([\d ]+)", message)
    return [int(i) for i in found[1].split()] if found and UNFINISHED in message.lower() else []


def _spec(ddp: DistributedDataParallel, model: str, world_size: int) -> dict[str, Any]:
    keywords = {name: bool(getattr(ddp, name, False)) for name in ("find_unused_parameters", "static_graph")}
    keywords["broadcast_buffers"] = bool(getattr(ddp, "broadcast_buffers", True))
    return {"model": model, "world_size": world_size, "steps": 0, "engine": "monitor", "ddp": keywords}


def _plain(kind: type, value: Any) -> Any:
    return None if value is None else from_plain(kind, value, "the monitor's last words")
