"""Where ddplint calls what the spec names: a call that is refused is the spec's fault, not the program's."""

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from ddplint.errors import SpecError
from ddplint.record.source import is_ours, user_frames

_REFUSED = re.compile(r"missing \d+ required|unexpected keyword|takes no arguments|takes (from )?\d+|multiple values"
                      r"|positional-only|incompatible constructor|not callable")


def called(call: Callable, where: str, /, *args: Any, **kwargs: Any) -> Any:
    """``call(...)``. SpecError where the arguments do not fit; what its own code raises passes through."""
    try:
        return call(*args, **kwargs)
    except TypeError as error:
        if user_frames(error) or not (_REFUSED.search(str(error)) or is_ours(error)):
            raise
        raise SpecError(str(error).split("\n")[0], where=where, hint=_nearest(error, call)) from error


def guarded(call: Callable, where: str) -> Callable:
    """The same callable, called by ``called``."""
    return functools.partial(called, call, where)


def nested(instantiate: Callable, node: dict[str, Any], where: str) -> Any:
    """Hydra's instantiate; an error of a nested ``_target_`` is the user's own, or the spec's."""
    from hydra.errors import InstantiationException
    try:
        return instantiate(node)
    except InstantiationException as error:
        if error.__cause__ is not None and user_frames(error.__cause__):
            raise error.__cause__ from None
        raise SpecError(" ".join(str(error).split()), where=where) from error


def _nearest(error: TypeError, call: Callable) -> str:
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    target = call.func if isinstance(call, functools.partial) else call
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return ""
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    near = difflib.get_close_matches(unknown[1], names, 1) if unknown else []
    return f"did you mean '{near[0]}'?" if near else f"it takes {', '.join(names)}" if names else ""
