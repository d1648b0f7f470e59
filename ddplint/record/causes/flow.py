"""Causes that the data flow shows: severed, dropped terms and outputs, dead ends, opaque places."""

import ast
import math

from ddplint.evidence import Cause, Place
from ddplint.record.causes.guards import blocked_key, blocking, left_early, place_of, skipped_with, unread
from ddplint.record.frames import Handover
from ddplint.record.history import Cut, Op, Site, Value
from ddplint.record.replay import Replay
from ddplint.record.syntax import enclosing_function, function_of, loads, source

# Results that carry no gradient by nature, and weaker ones still: what is blamed first.
_HARD = {"argmax", "argmin", "argsort", "topk", "sort", "max", "min", "round", "sign", "multinomial", "bernoulli"}


def severed(replay: Replay, bit: int) -> Cause | None:
    """A cut of this parameter lies in the history of the total or of a term (or, failing that, of an output)."""
    total = [replay.total] if replay.total is not None else []
    for values in (total, replay.terms.values(), replay.outputs.values()):
        history = 0
        for value in values:
            history |= value.cuts
        cuts = [c for i, c in enumerate(replay.tracer.cuts) if history >> i & 1 and c.bits & bit]
        if cuts:
            cause = severed_at(min(cuts, key=_cut_order), cuts)
            cause.terms = _terms_behind(replay, bit)
            return cause
    return None


def _terms_behind(replay: Replay, bit: int) -> list[str]:
    """The terms that the parameter's value goes into, though no gradient comes back."""
    blocked = sum(1 << i for i, cut in enumerate(replay.tracer.cuts) if cut.bits & bit)
    return [name for name, value in replay.terms.items() if value.cuts & blocked]


def left_torch(replay: Replay, bit: int) -> Cause | None:
    """The value was turned into a Python number or an array: what became of it cannot be followed."""
    cut = next((c for c in replay.tracer.cuts if c.left and c.bits & bit), None)
    if cut is not None:
        return severed_at(cut)
    for op in replay.tracer.left:
        history = 0
        for value in op.inputs:
            history |= value.cuts
        cuts = [c for i, c in enumerate(replay.tracer.cuts) if history >> i & 1 and c.bits & bit]
        if cuts:
            cause = severed_at(min(cuts, key=_cut_order), cuts)
            cause.text += f", and then leaves torch through {spelled(op.name)}"
            return cause
    return None


def _cut_order(cut: Cut) -> tuple:
    return cut.left, not cut.floating, cut.name not in _HARD and not cut.floating


def severed_at(cut: Cut, cuts: list[Cut] = ()) -> Cause:
    place = place_of(cut.blame or cut.site)
    also = [_where(c) for c in cuts if c is not cut and (c.blame or c.site) != (cut.blame or cut.site)][:3]
    if cut.blame is not None:
        if cut.checkpoint:
            return Cause("checkpoint", "a reentrant checkpoint whose tensor inputs need no gradient records nothing inside",
                         place, "checkpoint", also=also)
        return Cause("severed", f"gradients are switched off here, around {spelled(cut.name)}", place, "no_grad", also=[_where(cut), *also])
    if cut.left:
        return Cause("severed", f"turned into plain numbers by {spelled(cut.name)}", place, cut.name, also=also)
    if cut.floating:
        return Cause("severed", f"cut by {spelled(cut.name)}", place, cut.name, also=also)
    return Cause("severed", f"used only through {spelled(cut.name)}, which has no gradient", place, cut.name, also=also)


_WORDS = dict.fromkeys(("gt", "ge", "lt", "le", "eq", "ne", "__gt__", "__ge__", "__lt__", "__le__", "__eq__", "__ne__"), "a comparison")
_WORDS |= {"__getitem__": "indexing", "__setitem__": "an assignment to an index", "mul": "a product", "add": "a sum", "sub": "a difference",
           "div": "a division", "__bool__": "bool()", "__float__": "float()", "__int__": "int()", "allgather": "all_gather()", "allgather_base": "all_gather_into_tensor()"}


def spelled(name: str) -> str:
    """An operation as the user would write it."""
    return _WORDS.get(name) or (name if name.startswith((".", "autograd function")) else f"{name}()")


def _where(cut: Cut) -> str:
    place = place_of(cut.site)
    return f"{spelled(cut.name)} at {place.file}:{place.line}" if place else spelled(cut.name)


def severed_value(replay: Replay, value: Value) -> Cause | None:
    """For a term or total without a graph: the cut in its history."""
    cuts = [c for i, c in enumerate(replay.tracer.cuts) if value.cuts >> i & 1]
    return severed_at(min(cuts, key=_cut_order), cuts) if cuts else None


def constant(value: Value, what: str) -> Cause | None:
    """For a term or total that was made out of nothing."""
    op = creation(value)
    return None if op is None else Cause("constant", f"{what} is a constant, made by {op.name}()", place_of(op.site), op.name)


# ---------------------------------------------------------------------- opaque

def opaque(replay: Replay, bit: int) -> Cause:
    """In the total's graph, yet without a gradient: something on the way returned none."""
    for op in replay.tracer.ops:
        if op.name.startswith("autograd function") and any(v.live & bit for v in op.inputs):
            return Cause("opaque", f"{op.name} returns no gradient for it", place_of(op.site), op.name)
    return Cause("unknown", "it is in the loss's graph, yet no gradient came back")


# ---------------------------------------------------------------------- terms and outputs

def term_not_in_total(replay: Replay, names: list[str]) -> Cause:
    name, bit = names[0], replay.bits(f"term:{n}" for n in names)
    text = f"term '{name}' is not in the total"
    cut = next((c for c in replay.tracer.cuts if c.phase == "total" and c.bits & bit and _carries_on(c)), None)
    if cut is not None:
        cause = severed_at(cut)
        return Cause("term-not-in-total", f"term '{name}' is {cause.text} before it is added", cause.place, cut.name, terms=names)
    if not replay.total_graph and replay.total is not None and (made := constant(replay.total, "the total")):
        return Cause("term-not-in-total", f"{text}: {made.text}", made.place, made.operation, terms=names)
    skipped = skipped_with(replay, replay.term_ids.get(name, 0), "total") or blocked_key(replay, name, "total")
    if skipped is not None:
        return Cause("term-not-in-total", f"{text}: {skipped.text}", skipped.place, terms=names)
    return Cause("term-not-in-total", text, last_line(replay, "total" if replay.last_return("total") else "terms"), terms=names)


def _carries_on(cut: Cut) -> bool:
    """Whether what was cut can be meant for the sum: numbers, not what a condition asks."""
    return cut.floating or (cut.left and cut.name != "__bool__")


def last_line(replay: Replay, phase: str) -> Place | None:
    last = replay.last_return(phase)
    if last is None:
        return place_of(replay.backward)
    return place_of(Site(last.code, 0, last.last))


def output_not_in_loss(replay: Replay, paths: list[str], bit: int) -> Cause:
    made = constant_term(replay)
    if made is not None and _may_be_read(replay, paths):
        name, site = made
        text = f"term '{name}' is a constant here, not connected to output {_listed(paths)}"
        return Cause("output-not-in-loss", text, place_of(site), outputs=paths, terms=[name])
    marks = replay.bits(f"output:{path}" for path in paths)
    cuts = [cut for cut in replay.tracer.cuts if cut.bits & marks and (cut.floating or cut.left)]
    if cuts:
        cause = severed_at(min(cuts, key=_cut_order))
        cause.outputs, cause.text = paths, f"output {_listed(paths)}: {cause.text}"
        cause.terms = _terms_behind(replay, marks)
        return cause
    if not replay.total_graph and replay.total is not None and (cause := severed_value(replay, replay.total)):
        cause.outputs = paths
        return cause
    inner = _inner_gradient(replay, bit, paths)
    if inner is not None:
        text = f"output {_listed(paths)} enters the loss only through a gradient of it, on which the parameter has no influence"
        return Cause("output-not-in-loss", text, place_of(inner.site), "autograd.grad", outputs=paths)
    text = f"no term of the loss reads output {_listed(paths)}"
    for path in paths:
        if (guard := blocked_key(replay, path.rpartition(".")[2], "terms")) is not None:
            return Cause("output-not-in-loss", f"{text}: {guard.text}", guard.place, outputs=paths)
    for handed in replay.frames.handovers:
        if handed.kind == "passed" and handed.bits & marks and not handed.container and (kept := unread(handed)) is not None:
            return Cause("output-not-in-loss", f"{text}: {kept.text}", kept.place, outputs=paths)
    if (left := left_early(replay, "terms")) is not None:
        return Cause("output-not-in-loss", f"{text}: {left.text}", left.place, outputs=paths)
    # Terms that YAML spells out run no line of the user's: then the line on which the model returned the output.
    place = last_line(replay, "terms") or last_line(replay, "forward")
    return Cause("output-not-in-loss", text, place, outputs=paths)


def _may_be_read(replay: Replay, paths: list[str]) -> bool:
    """Whether the files of the loss read one of these outputs by its name anywhere (a mere position cannot be told)."""
    files = {code.co_filename for (_, code), kept in replay.frames.seen.items() if any(f.phase == "terms" for f in kept)}
    names = [path.rpartition(".")[2] for path in paths]
    return any(name.isdigit() or name == "output" for name in names) or any(name in source(file).keys for file in files for name in names)


def _listed(paths: list[str]) -> str:
    shown = ", ".join(f"'{p}'" for p in paths[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _inner_gradient(replay: Replay, bit: int, paths: list[str]) -> Op | None:
    """The autograd.grad() call through which the outputs enter the loss."""
    for op in replay.tracer.ops:
        if op.name == "grad" and any(v.data & bit or _follows(v, replay.outputs[path]) for v in op.inputs for path in paths):
            return op
    return None


def _follows(value: Value, source: Value) -> bool:
    """Whether ``source`` (or the call that made it) is in the history of ``value``."""
    todo, seen = [value], set()
    while todo:
        current = todo.pop()
        if current is source or (current.op is not None and current.op is source.op):
            return True
        if current.op is not None and id(current.op) not in seen:
            seen.add(id(current.op))
            todo += current.op.inputs
    return False


def constant_term(replay: Replay) -> tuple[str, Site] | None:
    """A floating term that is in the total and was made out of nothing: its name and the site that made it."""
    for name, value in replay.terms.items():
        if replay.term_graph.get(name):
            continue
        source = creation(value)
        if source is not None and source.site is not None and replay.total is not None and _follows(replay.total, value):
            return name, source.site
    return None


def creation(value: Value) -> Op | None:
    """The call that made a value out of no tensor at all; None where parameters or the batch are behind it."""
    op = value.op
    while op is not None:
        if not op.inputs:
            return op
        if any(v.op is None for v in op.inputs):
            return None
        op = op.inputs[0].op
    return None


def nonscalar(replay: Replay) -> Cause:
    """A total of several elements: the operation that made the first term of several, else where the total is returned."""
    for name, value in replay.terms.items():
        if math.prod(value.shape) > 1 and value.op is not None and value.op.site is not None:
            return Cause("nonscalar", f"term '{name}' has {math.prod(value.shape)} elements", value.op.site.place,
                         value.op.name, terms=[name])
    place = last_line(replay, "total") or last_line(replay, "terms")
    return Cause("nonscalar", "what leaves here as the total has more than one element", place)


def frozen(site: Site | None) -> Cause:
    """In a loop of the user's own that switches requires_grad off for one of its backwards."""
    return Cause("frozen", "its requires_grad is switched off for this backward", place_of(site), "requires_grad_")


def backward_left_out(replay: Replay) -> Cause | None:
    """In a loop of the user's own that did not get to backward(): what kept it."""
    for frames in replay.frames.seen.values():
        function, file = function_of(frames[0].code), frames[0].code.co_filename
        for call in source(file).reads.get("backward", ()) if function is not None else ():
            if enclosing_function(call) is function and (guard := blocking(call, function, file, frames)) is not None:
                return Cause("backward-left-out", f"backward() is not called: {guard.text}", guard.place)
    return None


# ---------------------------------------------------------------------- dead ends

def dead_end(replay: Replay, bit: int) -> Cause:
    """Where the last tensor with this parameter's numbers was dropped."""
    site, order, depth, name = _furthest(replay, bit, -1)
    while True:
        later = [h for h in replay.frames.handovers if h.kind == "passed" and h.bits & bit and h.order > order and h.depth > depth
                 and h.frame.code.co_name != "__init__"]
        if not later:
            break
        handed = later[0]
        try:
            site, order, depth, name = _furthest(replay, bit, handed.order)
        except ValueError:
            return _dropped_by_callee(handed)
    return Cause("dead-end", f"the result of {name} is computed and then dropped", place_of(site))


def _furthest(replay: Replay, bit: int, after: int) -> tuple[Site | None, int, int, str]:
    """The outermost, then latest event after ``after``: (site, order, depth, what). ValueError where there is none."""
    made = [(op.site, op.order, op.depth, spelled(op.name)) for op in replay.tracer.ops
            if op.order > after and op.site is not None and any(v.data & bit for v in op.results)]
    received = [(h.site, h.order, h.depth, "this call") for h in replay.frames.handovers
                if h.kind == "received" and h.bits & bit and h.order > after]
    return max(made + received, key=lambda event: (-event[2], event[1]))


def _dropped_by_callee(handed: Handover) -> Cause:
    """The callee got the tensor as an argument (perhaps inside a container) and does not read it."""
    code = handed.frame.code
    if (guard := unread(handed)) is not None:
        return Cause("dead-end", f"it is handed on, and {guard.text}", guard.place)
    function = function_of(code)
    line = _container_use(function, handed).lineno if isinstance(function, ast.FunctionDef) else code.co_firstlineno
    return Cause("dead-end", f"{code.co_qualname}() does not read this part of '{handed.name}'", place_of(Site(code, 0, line)))


def _container_use(function: ast.AST, handed: Handover) -> ast.AST:
    """The first use of the argument that takes it apart; else its first use."""
    uses = list(loads(function, handed.name))
    for use in uses:
        parent = use.parent
        if isinstance(parent, ast.Subscript | ast.For | ast.comprehension | ast.Starred) or (
                isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple | ast.List)):
            return use
    return uses[0]
