"""Why a piece of the user's source did not run: the ``if`` around it, the return before it, the call that left out an argument."""

import ast
import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from ddplint.evidence import Place
from ddplint.record import syntax
from ddplint.record.frames import FrameSeen, Handover
from ddplint.record.history import Site
from ddplint.record.replay import Replay
from ddplint.record.source import place_at

LIKE = 0.8
"""How alike two keys are of which one is taken to be the other, misspelt (difflib's ratio)."""


@dataclass
class Guard:
    """A line that kept something from running."""

    file: str
    node: ast.AST
    function: str
    text: str
    """One clause: what kept it."""

    @property
    def place(self) -> Place:
        return place_at(self.file, self.node.lineno, self.function)


def place_of(site: Site | None) -> Place | None:
    return site.place if site is not None else None


def name_of(function: ast.AST) -> str:
    return getattr(function, "name", "<lambda>")


# ---------------------------------------------------------------------- a use within a function

def blocking(use: ast.AST, function: ast.AST, file: str, frames: list[FrameSeen]) -> Guard | None:
    """What kept ``use`` from running in these frames of ``function`` (all ran); None where it did run, or nothing is found."""
    ran = set().union(*(f.lines for f in frames)) if frames else set()
    name = name_of(function)
    for node, test in reversed(syntax.tests_around(use, function)):
        if test.lineno in ran and not _branch_ran(node, use, ran):
            return refined(unmet(node, test, use, file, name), node, function, frames)
        if test.lineno not in ran:
            break
    if syntax.statement_of(use).lineno in ran:
        return None
    for skip in syntax.skips_before(use, function):
        if skip.lineno in ran:
            return skip_guard(skip, function, file, name)
    return None


def unmet(node: ast.AST, test: ast.AST, use: ast.AST, file: str, name: str) -> Guard:
    """A condition whose other branch ran; of an elif chain, the one in front of ``use``."""
    if isinstance(node, ast.match_case):
        return Guard(file, node.pattern, name, f"`case {short(node.pattern)}` is not taken")
    in_else = isinstance(node, ast.If | ast.IfExp) and syntax.below(use, node) and not any(
        syntax.below(use, part) for part in ([node.body] if isinstance(node, ast.IfExp) else node.body))
    if not in_else:
        return Guard(file, test, name, f"`{short(test)}` does not hold")
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        return unmet(node.orelse[0], node.orelse[0].test, use, file, name)
    return Guard(file, test, name, f"`{short(test)}` holds")


def _branch_ran(node: ast.AST, use: ast.AST, ran: set[int]) -> bool:
    """Whether the branch of an ``if`` that holds ``use`` ran; what shares one line with its test cannot be told: no."""
    if not isinstance(node, ast.If | ast.While | ast.match_case):
        return False
    branch = node.body if any(syntax.below(use, s) for s in node.body) else node.orelse
    return branch[0].lineno in ran and branch[0].lineno != getattr(node, "test", node.parent).lineno


def skip_guard(skip: ast.stmt, function: ast.AST, file: str, name: str) -> Guard:
    """A return of something is its own line; a continue, a break, a bare return and one that is an arm of its own are told by their ``if``."""
    tests = syntax.tests_around(skip, function)
    if isinstance(skip, ast.Return) and skip.value is None and tests and isinstance(tests[0][0], ast.If):
        node, test = tests[0]
        holds = "holds" if any(syntax.below(skip, statement) for statement in node.body) else "does not hold"
        return Guard(file, test, name, f"`{short(test)}` {holds}, and `return` comes first")
    if not tests or (isinstance(skip, ast.Return) and not _calls_own_part(skip)):
        return Guard(file, skip, name, f"`{short(skip)}` comes first")
    return Guard(file, tests[0][1], name, f"`{short(tests[0][1])}` skips it")


def short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _calls_own_part(skip: ast.Return) -> bool:
    """Whether a return calls a part of the object: ``return self.other_head(h)``."""
    for call in ast.walk(skip):
        root = call.func if isinstance(call, ast.Call) else None
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Name) and root.id == "self":
            return True
    return False


# ---------------------------------------------------------------------- the caller's part in it

def refined(guard: Guard, node: ast.AST, function: ast.AST, frames: list[FrameSeen]) -> Guard:
    """Where the condition hangs on an argument that the caller left out, or decided itself: the call."""
    if not isinstance(node, ast.If | ast.IfExp | ast.BoolOp) or isinstance(function, ast.Lambda):
        return guard
    frames = [f for f in frames if syntax.function_of(f.code) is function]
    for decider in _deciders(guard.node, frames):
        names = {n.id for n in ast.walk(decider) if isinstance(n, ast.Name) and n.id != "self"}
        parameters = [a.arg for a in [*function.args.args, *function.args.kwonlyargs] if a.arg in names]
        if len(parameters) == 1 and not _assigned(function, parameters[0], guard.node.lineno):
            return _at_call(guard, parameters[0], function, frames)
    return guard


def _deciders(test: ast.expr, frames: list[FrameSeen]) -> list[ast.expr]:
    """The parts of ``a and b`` that were false, as far as they can be looked at again; else all of them."""
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return [test]
    for frame in frames:
        local = frame.tests.get(test.lineno)
        if local is not None:
            known = [(part, _holds(part, local, frame)) for part in test.values]
            false = [part for part, holds in known if holds is False]
            if false:
                return false
    return test.values


def _holds(part: ast.expr, local: dict, frame: FrameSeen) -> bool | None:
    if not syntax.is_quiet(part):
        return None
    try:
        code = compile(ast.Expression(part), "<guard>", "eval")
        return bool(eval(code, {"__builtins__": {}}, local))
    except Exception:  # noqa: BLE001 (whatever the user's expression raises, it cannot be told)
        return None


def _assigned(function: ast.AST, name: str, before: int) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n.lineno < before
               for n in ast.walk(function))


def _at_call(guard: Guard, parameter: str, function: ast.AST, frames: list[FrameSeen]) -> Guard:
    frame = next((f for f in frames if f.caller is not None), None)
    call = syntax.call_at(frame.caller) if frame is not None else None
    if call is None:
        return guard
    caller = frame.caller
    argument = syntax.argument_for(call, function, parameter, bound=_is_method(function))
    if argument is False:
        return guard
    if argument is None:
        if frame.above is not None and not frame.above.owner:      # the call of the whole model: not its own code
            return guard
        return Guard(caller.code.co_filename, call, caller.code.co_name, f"'{parameter}' is not passed, so {guard.text}")
    if isinstance(argument, ast.Compare | ast.BoolOp | ast.Constant | ast.IfExp) or (
            isinstance(argument, ast.UnaryOp) and isinstance(argument.op, ast.Not)):
        return Guard(caller.code.co_filename, argument, caller.code.co_name, f"'{parameter}' is passed as `{short(argument)}`, and {guard.text}")
    above = syntax.function_of(caller.code)
    if isinstance(argument, ast.Name) and frame.above is not None and _is_parameter(above, argument.id):
        found = _at_call(guard, argument.id, above, [frame.above])
        return found
    return guard


def _is_method(function: ast.AST) -> bool:
    return bool(function.args.args) and function.args.args[0].arg in ("self", "cls")


def _is_parameter(function: ast.AST | None, name: str) -> bool:
    return isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        a.arg == name for a in [*function.args.args, *function.args.kwonlyargs])


# ---------------------------------------------------------------------- an argument that is not read

def unread(handed: Handover) -> Guard | None:
    """Why the function that got a tensor as an argument did not read it; None where it did read it, or part of it."""
    code = handed.frame.code
    function = syntax.function_of(code)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    uses = list(syntax.loads(function, handed.name))
    if not uses:
        return Guard(code.co_filename, function, code.co_name, f"{code.co_qualname}() does not read '{handed.name}'")
    guards = [blocking(use, function, code.co_filename, [handed.frame]) for use in uses]
    return guards[0] if all(guards) else None


# ---------------------------------------------------------------------- loops over modules, terms

def skipped_while_bound(target: int, frames: Iterable[FrameSeen]) -> Guard | None:
    """What passed over an object that a local name stood for: a condition in its loop, or what kept the name from being read."""
    for frame in frames:
        lines, function = frame.bound.get(target), syntax.function_of(frame.code)
        if lines and function is not None:
            name = frame.bound_as[target]
            if guard := _last_condition(set(lines), name, function, frame) or _unread_name(name, function, frame):
                return guard
    return None


def _last_condition(ran: set[int], bound: str, function: ast.AST, frame: FrameSeen) -> Guard | None:
    """The condition that passed over what ``bound`` stood for, among the lines that ran meanwhile, within its loop."""
    file, name = frame.code.co_filename, frame.code.co_name
    for node in ast.walk(function):
        if isinstance(node, ast.Continue | ast.Break) and node.lineno in ran and node.lineno != node.parent.lineno:
            return skip_guard(node, function, file, name)
        if isinstance(node, ast.If) and node.test.lineno in ran and node.body[0].lineno not in ran and any(
                True for statement in node.body for _ in syntax.loads(statement, bound)):
            return Guard(file, node.test, name, f"`{short(node.test)}` does not hold for it")
        if isinstance(node, ast.comprehension) and node.ifs and node.ifs[0].lineno in ran:
            return Guard(file, node.ifs[0], name, f"`{short(node.ifs[0])}` leaves it out")
    return None


def _unread_name(name: str, function: ast.AST, frame: FrameSeen) -> Guard | None:
    """For a parameter of a function: what kept all its reads from running."""
    if not _is_parameter(function, name):
        return None
    uses = [use for use in syntax.loads(function, name) if isinstance(use.parent, ast.Call | ast.Attribute)]
    guards = [blocking(use, function, frame.code.co_filename, [frame]) for use in uses]
    return guards[0] if guards and all(guards) else None


def skipped_with(replay: Replay, target: int, phase: str) -> Guard | None:
    """The condition in the user's functions of this phase that passed over an object (a term's tensor)."""
    frames = [f for kept in replay.frames.seen.values() for f in kept if f.phase == phase]
    return skipped_while_bound(target, frames)


def left_early(replay: Replay, phase: str) -> Guard | None:
    """The break that ended a loop of the user's functions of this phase, before its last items."""
    for frame in (f for kept in replay.frames.seen.values() for f in kept if f.phase == phase):
        function = syntax.function_of(frame.code)
        for node in ast.walk(function) if function is not None else ():
            if isinstance(node, ast.Break) and node.lineno in frame.lines and node.lineno != node.parent.lineno:
                return skip_guard(node, function, frame.code.co_filename, frame.code.co_name)
    return None


# ---------------------------------------------------------------------- a key of the outputs

def blocked_key(replay: Replay, key: str, phase: str) -> Guard | None:
    """The condition around the only reads of a key (or of a misspelt one) in the functions of a phase, where none of them ran."""
    for kept in replay.frames.seen.values():
        frames = [f for f in kept if f.phase == phase]
        function = syntax.function_of(frames[0].code) if frames else None
        if function is None:
            continue
        reads = _reads_of_keys(function)
        for name in (key, *difflib.get_close_matches(key, reads.keys() - {key, *replay.outputs}, 1, LIKE)):
            guards = [blocking(use, function, frames[0].code.co_filename, frames) for use in reads.get(name, ())]
            if guards and all(guards):
                return guards[0]
    return None


def _reads_of_keys(function: ast.AST) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.ctx, ast.Load):
            found.setdefault(str(node.slice.value), []).append(node)
        elif isinstance(node, ast.Attribute):
            found.setdefault(node.attr, []).append(node)
    return found
