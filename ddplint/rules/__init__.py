"""The rules: one file each, named after its rule in snake_case."""

import functools
import importlib
import pkgutil

from ddplint.errors import SpecError
from ddplint.rules.base import Problem, Rule, rule

__all__ = ["Problem", "Rule", "catalogue", "load", "rule"]

_HELPERS = {"base", "words"}


@functools.cache
def catalogue() -> dict[str, Rule]:
    """Every shipped rule by its name, in the order of the alphabet."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _HELPERS)
    rules = [getattr(importlib.import_module(f"{__name__}.{name}"), name) for name in names]
    return {found.name: found for found in rules}


def load(target: str, where: str = "") -> Rule:
    """A rule by its dotted path in the user's code. Raises SpecError where there is none."""
    module, _, name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise SpecError(f"rule '{target}' cannot be imported ({reason})", where=where) from error
    if not isinstance(found, Rule):
        raise SpecError(f"'{target}' is no rule", where=where,
                        hint="decorate the function with @rule (from ddplint import rule)")
    return found
