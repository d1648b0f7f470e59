"""Why a rank went through the wrapper, or made the optimizer's step, less often than others within one step of the user's own loop."""

import ast

from ddplint.evidence import Cause
from ddplint.record import syntax
from ddplint.record.causes.guards import blocking
from ddplint.record.history import Site
from ddplint.record.replay import Replay
from ddplint.record.source import place_at


def why_fewer(replay: Replay) -> Cause | None:
    """The loop around the call of the wrapper; or where an item left its body before, if one did."""
    for site in replay.forward_stack:
        function = syntax.function_of(site.code)
        loop = _innermost_loop(function, site.line) if function is not None else None
        if loop is None:
            continue
        ran = replay.frames.lines.get(site.code.co_filename, set())
        if (skip := _skip(loop, site.line, ran)) is not None:
            return Cause("uneven", f"`{ast.unparse(skip)}` leaves an item of the loop out, before the model is called",
                         Site(site.code, 0, skip.lineno).place)
        return Cause("uneven", "the loop runs once for each of the rank's own batches", Site(site.code, 0, loop.lineno).place)
    return None


def why_no_update(replay: Replay, file: str, line: int) -> Cause | None:
    """What kept the optimizer's step at this line from being made."""
    for frames in replay.frames.seen.values():
        code = frames[0].code
        function = syntax.function_of(code) if place_at(code.co_filename, line).file == file else None
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and n.lineno == line] if function is not None else []
        if calls and (guard := blocking(calls[0], function, code.co_filename, frames)) is not None:
            return Cause("update-left-out", f"this rank leaves the optimizer's step out: {guard.text}", guard.place)
    return None


def _innermost_loop(function: ast.AST, line: int) -> ast.For | ast.While | None:
    around = [n for n in ast.walk(function) if isinstance(n, ast.For | ast.While) and n.body[0].lineno <= line <= n.body[-1].end_lineno]
    return max(around, key=lambda loop: loop.lineno, default=None)


def _skip(loop: ast.For | ast.While, line: int, ran: set[int]) -> ast.stmt | None:
    """A continue or break that ran, before the line of the call."""
    skips = [n for n in ast.walk(loop) if isinstance(n, ast.Continue | ast.Break)]
    return next((n for n in skips if n.lineno in ran and n.lineno < line), None)
