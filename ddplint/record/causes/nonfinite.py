"""Where NaN or inf comes from: forward, or backward only."""

from ddplint.evidence import Cause
from ddplint.record.causes.flow import spelled
from ddplint.record.causes.guards import place_of
from ddplint.record.history import Op, Value
from ddplint.record.replay import Replay
from ddplint.record.slopes import FINITE, INF

# Functions whose derivative (or value) is infinite somewhere.
_STEEP = {"sqrt", "rsqrt", "log", "log2", "log10", "div", "true_divide", "pow", "norm", "acos", "asin", "atanh", "acosh",
          "atan2", "reciprocal", "__truediv__", "__rtruediv__", "__rdiv__", "std", "var", "cdist", "normalize", "__pow__", "__rpow__",
          "logsumexp", "logit", "xlogy", "cosine_similarity", "pairwise_distance", "vector_norm", "dist"}


def why_nonfinite_value(replay: Replay, value: Value | None) -> Cause | None:
    """For a term, the total or an output that is not finite: the first operation that made it so."""
    if value is None or value.state == FINITE:
        return None
    births = [op for i, op in enumerate(replay.tracer.births) if value.births >> i & 1]
    if births and not any(v.name in replay.parameters and v.state not in ("", FINITE) for v in births[0].inputs):
        return _born(births[0], births[1:])
    return _given(replay, value)


def _born(op: Op, later: list[Op]) -> Cause:
    what = "inf" if any(v.state == INF for v in op.results) else "NaN"
    also = [f"{spelled(o.name)} at {p.file}:{p.line}" for o in later[:3] if (p := place_of(o.site)) is not None]
    return Cause("nonfinite", f"{spelled(op.name)} gives {what} here, of finite inputs", place_of(op.site), op.name, also=also)


def _given(replay: Replay, value: Value) -> Cause | None:
    """No operation is to blame: a parameter or the batch held it already."""
    todo, seen = [value], set()
    while todo:
        current = todo.pop()
        if current.op is None:
            if current.state not in ("", FINITE):
                if current.name and replay.blown is not None:
                    return replay.blown
                what = f"parameter '{current.name}'" if current.name else "the batch"
                return Cause("nonfinite", f"{what} holds {current.state} already")
        elif id(current.op) not in seen:
            seen.add(id(current.op))
            todo += [v for v in current.op.inputs if v.state != FINITE]
    return None


def why_nonfinite_gradient(replay: Replay, parameter: str) -> Cause | None:
    """For a parameter: the forward's fault where the loss is not finite, else the operation whose backward is."""
    if cause := why_nonfinite_value(replay, replay.total):
        return cause
    return why_blown(replay, replay.bit(parameter))


def why_blown(replay: Replay, bit: int = 0) -> Cause | None:
    """The operation in whose backward gradients first stopped being finite (on the way to a subject, by its bit)."""
    first = next((v for v in replay.slopes.order if (not bit or v.live & bit) and not _finite(v.slope)), None)
    if first is None:
        return None
    op = _culprit(replay, first)
    if op is None:
        return None
    if (mask := _swallowed(replay, op)) is not None:
        place = place_of(op.site)
        also = [f"{spelled(op.name)} at {place.file}:{place.line}"] if place else []
        return Cause("nonfinite", f"{spelled(mask.name)} hides values that are not finite; backward still goes through them",
                     place_of(mask.site), mask.name, also=also)
    return Cause("nonfinite", f"the derivative of {spelled(op.name)} is not finite here", place_of(op.site), op.name,
                 terms=_terms_after(replay, op))


def _terms_after(replay: Replay, op: Op) -> list[str]:
    """The terms that follow from what the operation gave."""
    after = {id(value) for value in op.results}
    for later in replay.tracer.ops[op.index + 1:]:
        if any(id(value) in after for value in later.inputs):
            after |= {id(value) for value in later.results}
    return [name for name, value in replay.terms.items() if id(value) in after]


def _finite(slope: float | None) -> bool:
    return slope is None or abs(slope) < float("inf")


def _culprit(replay: Replay, value: Value) -> Op | None:
    """The operation that read ``value`` and turned a finite gradient into another: steep functions first."""
    readers = [op for op in replay.tracer.ops if any(v is value for v in op.inputs)
               and any(v.slope is not None and _finite(v.slope) for v in op.results)]
    return max(readers, key=lambda op: (any(v.state != FINITE for v in op.results), op.name in _STEEP, op.index), default=None)


def _swallowed(replay: Replay, op: Op) -> Op | None:
    """The first later operation, in what follows from ``op``, that reads a non-finite value and gives a finite one."""
    tainted = {id(v) for v in op.results if v.state != FINITE}
    for later in replay.tracer.ops[op.index + 1:] if tainted else ():
        if any(id(v) in tainted for v in later.inputs):
            if all(v.state == FINITE for v in later.results):
                return later
            tainted |= {id(v) for v in later.results if v.state != FINITE}
    return None
