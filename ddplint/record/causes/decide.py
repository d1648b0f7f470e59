"""The order in which causes are looked for, subject by subject."""

from ddplint.evidence import Cause
from ddplint.record.causes.flow import (
    backward_left_out,
    constant,
    dead_end,
    frozen,
    left_torch,
    nonscalar,
    opaque,
    output_not_in_loss,
    severed,
    severed_value,
    term_not_in_total,
)
from ddplint.record.causes.nonfinite import why_nonfinite_gradient, why_nonfinite_value
from ddplint.record.causes.uncalled import explain_uncalled, explain_unread
from ddplint.record.causes.ungraphed import why_ungraphed
from ddplint.record.causes.zero import why_zero, why_zero_term
from ddplint.record.replay import Replay
from ddplint.record.request import MISSING, ZERO


def why_parameter(replay: Replay, parameter: str, kind: str) -> Cause | None:
    """The cause for a parameter of the request; None where this step does not show the fault."""
    if kind == ZERO:
        return why_zero(replay, parameter)
    if kind == MISSING:
        return why_missing(replay, parameter) if replay.parts or replay.parameters[parameter].requires_grad else None
    return why_nonfinite_gradient(replay, parameter)


def why_missing(replay: Replay, parameter: str) -> Cause | None:
    """Without a gradient in this step; in a loop of the user's own, in one of its backwards."""
    bit = replay.bit(parameter)
    if replay.program.custom_step and not replay.parts and (cause := backward_left_out(replay)):
        return cause
    if not replay.fired & bit:
        return why_no_gradient(replay.parts[0] if replay.parts else replay, parameter)
    part = next((part for part in replay.parts if not part.total_reach & bit), None)
    return why_no_gradient(part, parameter) if part is not None else None


def why_no_gradient(replay: Replay, parameter: str) -> Cause | None:
    """The cause for a parameter that got no gradient from the total."""
    if parameter in replay.frozen:
        return frozen(replay.frozen[parameter])
    bit = replay.bit(parameter)
    if replay.total_reach & bit:
        return None if replay.error is not None else opaque(replay, bit)
    return _unheard(replay, bit, replay.term_reach, replay.output_reach) or _off_the_loss(replay, parameter, bit)


def _unheard(replay: Replay, bit: int, term_reach: dict[str, int], output_reach: dict[str, int]) -> Cause | None:
    """It reaches terms, outputs, or values that are cut off from the total."""
    terms = [name for name, reach in term_reach.items() if reach & bit]
    if terms:
        return term_not_in_total(replay, terms)
    outputs = [path for path, reach in output_reach.items() if reach & bit]
    if outputs:
        return output_not_in_loss(replay, outputs, bit)
    return severed(replay, bit)


def why_use(replay: Replay, parameter: str, module: str) -> Cause | None:
    """The cause for one use of a shared parameter; None where it reaches the total, or was not seen."""
    bit = replay.bit(f"use:{parameter}:{module}")
    if not any(v.data & bit for op in replay.tracer.ops for v in op.results) or (replay.total and replay.total.live & bit):
        return None
    live = {name: value.live for name, value in replay.terms.items()}, {path: value.live for path, value in replay.outputs.items()}
    return _unheard(replay, bit, *live) or left_torch(replay, bit) or dead_end(replay, bit)


def _off_the_loss(replay: Replay, parameter: str, bit: int) -> Cause:
    """Nothing of it reaches the loss in any way."""
    if cause := left_torch(replay, bit):
        return cause
    if replay.tracer.read & bit:
        return dead_end(replay, bit)
    module = parameter.rpartition(".")[0]
    if module in replay.active:
        return explain_unread(replay, parameter)
    return explain_uncalled(replay, module)


def why_output(replay: Replay, path: str) -> Cause | None:
    """The cause for an output that no term reads, or only terms that are not in the total."""
    if path not in replay.outputs:
        return None
    bit = replay.bit(f"output:{path}")
    readers = [name for name, value in replay.terms.items() if value.live & bit]
    if not readers:
        return output_not_in_loss(replay, [path], bit)
    if replay.total is None or replay.total.live & bit:
        return None
    cause = term_not_in_total(replay, readers)
    cause.outputs = [path]
    return cause


def why_term(replay: Replay, name: str) -> Cause | None:
    """The cause for a term that is not finite, has no graph, is not in the total, or is weighted with zero."""
    value = replay.terms.get(name)
    if value is None:
        return None
    if cause := why_nonfinite_value(replay, value):
        return cause
    if not replay.term_graph.get(name):
        return why_ungraphed(replay, name) or severed_value(replay, value) or constant(value, f"term '{name}'")
    if replay.total is not None and not replay.total.live & replay.bit(f"term:{name}"):
        return term_not_in_total(replay, [name])
    return why_zero_term(replay, name)


def why_loss(replay: Replay) -> Cause | None:
    """The cause for a total that is not finite, without a graph, or no scalar."""
    if cause := why_nonfinite_value(replay, replay.total):
        return cause
    if replay.error is not None and "only for scalar outputs" in str(replay.error):
        return nonscalar(replay)
    if replay.total is None or replay.total_graph:
        return None
    return severed_value(replay, replay.total) or constant(replay.total, "the loss")


def why_module(replay: Replay, name: str) -> Cause | None:
    """The cause for a module that was not called; None where it, or a part of it, was."""
    return None if name in replay.active else explain_uncalled(replay, name)
