"""Terms that a total adds up although no gradient comes back through them."""

import dataclasses

from ddplint.evidence import Cause
from ddplint.record.causes.flow import severed_value, spelled
from ddplint.record.causes.guards import place_of
from ddplint.record.history import Op, Value
from ddplint.record.replay import Replay

_SUMS = {"add", "radd", "iadd", "sub", "rsub", "isub", "sum", "mean", "stack", "cat", "concat", "hstack", "neg",
         "view", "reshape", "squeeze", "unsqueeze", "to", "float", "type_as", "getitem"}
_PRODUCTS = {"mul", "rmul", "imul", "div", "truediv", "itruediv", "multiply", "dot"}


def why_ungraphed(replay: Replay, name: str) -> Cause | None:
    """For a term without a graph that the user adds to a total with one: the cut between the parameters and the term.

    A term that scales another is none, nor is what only stands in the mapping that ddplint adds up.
    """
    if replay.total is None or not replay.total_graph or not _is_added(replay, name):
        return None
    cause = severed_value(replay, replay.terms[name])
    if cause is None:
        return None
    if (reader := _reader_of_indices(replay.terms[name], cause)) is not None:
        text = f"{spelled(reader.name)} makes it of the indices that {spelled(cause.operation)} gives, which have no gradient"
        also = [f"{spelled(cause.operation)} at {cause.place.file}:{cause.place.line}"] if cause.place else []
        return Cause("ungraphed", text, place_of(reader.site), reader.name, also=also)
    return dataclasses.replace(cause, kind="ungraphed")


def _reader_of_indices(term: Value, cause: Cause) -> Op | None:
    """Of a call that gives values with a graph as well (topk, sort, max): the first reader of its indices on the way to the term."""
    found, todo, seen = [], [term], set()
    while todo:
        op = todo.pop().op
        if op is None or id(op) in seen:
            continue
        seen.add(id(op))
        if any(v.op is not None and v.op.name == cause.operation and not v.grad and any(r.grad for r in v.op.results) for v in op.inputs):
            found.append(op)
        todo += op.inputs
    return min(found, key=lambda op: op.index, default=None)


def _is_added(replay: Replay, name: str) -> bool:
    term, todo, seen = replay.terms[name], [replay.total], set()
    while todo:
        op = todo.pop().op
        if op is None or id(op) in seen:
            continue
        seen.add(id(op))
        parts = _summands(op)
        if any(v is term or (v.op is not None and v.op is term.op) for v in parts) and (op.site is not None or name in replay.program.weights):
            return True
        todo += parts
    return False


def _summands(op: Op) -> list[Value]:
    """The inputs that the result is a weighted sum of."""
    name = op.name.strip("_")
    if name in _SUMS:
        return op.inputs
    if name in _PRODUCTS:
        return [v for v in op.inputs if not any(other.grad for other in op.inputs if other is not v)]
    return []
