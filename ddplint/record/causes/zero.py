"""Where a gradient dies on its way back: the operation that got a gradient and passed on none."""

import math

from ddplint.evidence import Cause
from ddplint.record.causes.flow import spelled
from ddplint.record.causes.guards import place_of
from ddplint.record.history import Op, Value
from ddplint.record.replay import Replay

TINY = 1e-5
PROPORTIONAL = 1e-3
SCALED = "scaled-down"
_PRODUCTS = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "linear", "matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm", "einsum",
             "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention"}
_FACTORS = {"linear": (0, 2), "conv1d": (0, 2), "conv2d": (0, 2), "conv3d": (0, 2), "addmm": (1, 3), "baddbmm": (1, 3),
            "scaled_dot_product_attention": (0, 3)}
"""Which inputs of a product are multiplied, where not all are: a bias is added."""
_JOINS = {"cat", "stack", "concat", "hstack", "vstack", "pad", "__setitem__", "index_put", "index_copy", "scatter", "where"}
_SELECTIONS = {"__getitem__", "index_select", "narrow", "select", "gather", "take_along_dim", "masked_select", "split", "chunk"}
_VIEWS = {"t", ".T", ".mT", "transpose", "view", "reshape", "permute", "unsqueeze", "squeeze", "expand", "__getitem__", "to",
          "float", "half", "bfloat16", "type_as", "contiguous", "flatten", "unflatten", "chunk", "split", "unbind"}


def why_zero(replay: Replay, parameter: str) -> Cause | None:
    """The cause for a parameter whose gradient is zero, or tiny next to what its consumers got."""
    bit = replay.bit(parameter)
    op = _where_it_dies(replay, parameter)
    if op is None:
        sizes = map(_size, _deaths(replay)[1].get(parameter, ()))
        return Cause(SCALED, "its gradient grows small little by little, in no single operation") if any(sizes) else None
    if (zero := _zero_partner(replay, op, parameter, bit)) is not None:
        if (later := _where_it_dies(replay, zero)) is not None and _zero_partner(replay, later, zero, replay.bit(zero)) is None:
            return why_zero(replay, zero)
        return _made_of_zeros(replay, parameter, zero)
    place = place_of(op.site)
    if place is None and op.phase == "total":
        return _zero_weight(replay, op, bit)
    if (factor := _small_factor(op, bit)) is not None:
        return Cause(SCALED, f"it is multiplied by numbers of at most {factor:.0e} in {spelled(op.name)}", place, op.name)
    return Cause("multiplied-by-zero", _how(op, bit), place, op.name)


def _small_factor(op: Op, bit: int) -> float | None:
    """The largest number by which a product can scale the gradient down; None where the gradient gets lost otherwise."""
    outer = max((_size(v) for v in op.results if v.grad), default=0.0)
    factors = op.inputs[slice(*_FACTORS.get(op.name, (None,)))] if op.name in _PRODUCTS else []
    for value in factors:
        others = [other.largest for other in factors if other is not value and other.largest]
        if value.live & bit and others and _size(value) > PROPORTIONAL * outer * math.prod(others):
            return math.prod(others)
    return None


def why_zero_term(replay: Replay, name: str) -> Cause | None:
    """The cause for a term that is in the total, which does not depend on it."""
    bit, op = replay.bit(f"term:{name}"), _where_it_dies(replay, f"term:{name}")
    if op is None:
        return None
    place = place_of(op.site)
    return _zero_weight(replay, op, bit) if place is None and op.phase == "total" else \
        Cause("multiplied-by-zero", _how(op, bit), place, op.name)


def _where_it_dies(replay: Replay, subject: str) -> Op | None:
    """The nearest operation downstream of the subject whose result got a gradient that its input did not pass on."""
    dies, sources = _deaths(replay)
    bit = replay.bit(subject)
    values = sources.get(subject) or [v for v in replay.terms.values() if v.live & bit]
    nearest = min((dies[id(v)] for v in values if id(v) in dies), key=lambda op: op.index, default=None)
    if nearest is None:
        return None
    if nearest.name in _JOINS:
        return _selection_after(replay, nearest, bit) or nearest
    return _became_zero(replay, nearest, bit) or nearest


def _deaths(replay: Replay) -> tuple[dict[int, Op], dict[str, list[Value]]]:
    """For each value (by id), the nearest operation downstream where gradients die; and the sources by name.

    One pass against the order of calls: what an operation's results run into, its inputs run into too, unless the
    gradient dies right there.
    """
    if "deaths" not in replay.memo:
        dies: dict[int, Op] = {}
        sources: dict[str, list[Value]] = {}
        for op in reversed(replay.tracer.ops):
            outer = max((_size(v) for v in op.results if v.grad), default=0.0)
            later = min((dies[id(v)] for v in op.results if id(v) in dies), key=lambda o: o.index, default=None)
            for value in op.inputs:
                if value.grad and (found := op if outer > 0.0 and _size(value) <= TINY * min(outer, 1e30) else later) is not None:
                    for reached in _same(value):
                        dies[id(reached)] = min(dies.get(id(reached), found), found, key=lambda o: o.index)
                if value.op is None and value.name:
                    sources.setdefault(value.name, []).append(value)
        replay.memo["deaths"] = dies, sources
    return replay.memo["deaths"]


def _same(value: Value) -> list[Value]:
    """The value itself; for a view into memory that was written since, what was written too."""
    return [value] if value.op is None or value in value.op.results else [value, *value.op.results]


def _size(value: Value) -> float:
    """The size of a value's gradient; one that is not finite counts as large."""
    slope = value.slope or 0.0
    return math.inf if math.isnan(slope) else slope


def _became_zero(replay: Replay, last: Op, bit: int) -> Op | None:
    """Where the input of ``last`` turned into zeros, which is why nothing flows back (0 squared, 0 times x)."""
    if not any(v.live & bit and v.zero for v in last.inputs):
        return None
    for op in replay.tracer.ops[:last.index]:
        before = [v for v in op.inputs if v.live & bit]
        if before and not any(v.zero for v in before) and any(v.zero and v.live & bit for v in op.results):
            return op
    return None


def _selection_after(replay: Replay, join: Op, bit: int) -> Op | None:
    """Where the part that the subject was joined into is left out again."""
    return next((op for op in replay.tracer.ops[join.index + 1:] if op.name in _SELECTIONS and _carries(op, bit)
                 and _less(op)), None)


def _less(op: Op) -> bool:
    """Whether the results are smaller than the input: something was left out."""
    return sum(math.prod(v.shape) for v in op.results) < max(math.prod(v.shape) for v in op.inputs)


def _carries(op: Op, bit: int) -> bool:
    return any(v.live & bit for v in op.inputs)


def _how(op: Op, bit: int) -> str:
    if op.name in _SELECTIONS and _less(op):
        return f"{spelled(op.name)} leaves its part out"
    if op.name in ("mul", "__mul__", "__rmul__", "mul_", "__imul__"):
        return "multiplied by zero"
    if any((v.slope or 0.0) > 0.0 for v in op.inputs if v.live & bit):
        return f"next to no gradient comes back through {spelled(op.name)}: the result hardly depends on it"
    return f"no gradient comes back through {spelled(op.name)}"


def _zero_weight(replay: Replay, op: Op, bit: int) -> Cause:
    names = [name for name, value in replay.terms.items() if value.live & bit and replay.program.weights.get(name) == 0.0]
    if not names:
        return Cause("multiplied-by-zero", _how(op, bit), None, op.name)
    return Cause("multiplied-by-zero", f"loss.terms.{names[0]}.weight is 0", None, f"loss.terms.{names[0]}.weight", terms=names)


# ---------------------------------------------------------------------- products of zeros

def _zero_partner(replay: Replay, op: Op, parameter: str, bit: int) -> str | None:
    """Another parameter, all zero and without gradient too, that makes this operation's product vanish."""
    for value in op.inputs:
        if value.live & bit and value.name != parameter and not value.zero:
            continue
        name = _zero_source(replay, value, parameter)
        if name is not None:
            return name
    return None


def _zero_source(replay: Replay, value: Value, besides: str) -> str | None:
    todo = [value]
    for _ in range(50):
        if not todo:
            return None
        current = todo.pop(0)
        if current.op is None:
            if current.name and current.name != besides and current.zero and replay.request.parameters.get(current.name) == "zero":
                return current.name
        elif current.zero or current.op.name in _VIEWS:
            todo += current.op.inputs
    return None


def _made_of_zeros(replay: Replay, parameter: str, partner: str) -> Cause:
    """Of two factors that are both zero, the one that is used first is the one to initialise otherwise."""
    names = [parameter, partner]
    reads = replay.tracer.read_by
    both_zero = all(bool((replay.parameters[n] == 0).all()) for n in names)
    blamed = min(names, key=lambda n: reads[n].index if n in reads else 0) if both_zero else partner
    other = next(n for n in names if n != blamed)
    text = f"'{blamed}' and '{other}' are both all zero, and each one's gradient is a product with the other" if both_zero \
        else f"it is multiplied by '{blamed}', which is all zero and gets no gradient"
    return Cause("multiplied-by-zero", text, made_at(replay, blamed), also=[other])


def made_at(replay: Replay, parameter: str):
    """Where the parameter's values were last set while the model was built; else where it was assigned."""
    owner, _, name = parameter.rpartition(".")
    written = replay.initialised.get(id(replay.parameters[parameter]))
    return place_of(written or replay.construction.site(replay.module(owner), name))
