"""ddplint: a linter for PyTorch DistributedDataParallel jobs, run before launch.

The public names below are loaded when they are first used, so that ``import ddplint`` costs nothing; none of them
imports torch into this process. The verbs bear their module's name and are imported from there:
``from ddplint.record import record``, ``from ddplint.check import check``, ``from ddplint.render import show``.
"""

import sys

from ddplint.version import VERSION as __version__  # noqa: F401

__all__ = ["DdplintError", "Evidence", "Finding", "Problem", "Report", "Spec", "SpecError", "lint", "main", "rule"]

_HOMES = {
    "DdplintError": "ddplint.errors",
    "Evidence": "ddplint.evidence",
    "Finding": "ddplint.report",
    "Problem": "ddplint.rules.base",
    "Report": "ddplint.report",
    "Spec": "ddplint.spec",
    "SpecError": "ddplint.errors",
    "lint": "ddplint.api",
    "main": "ddplint.cli",
    "rule": "ddplint.rules.base",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ddplint' has no attribute '{name}'")
    import importlib
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _FindInClone:
    """Finds ``ddplint.configs`` and ``ddplint.examples`` in a plain checkout, where nothing was installed: asked last."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        folder = name.removeprefix("ddplint.")
        if name == folder or folder not in ("configs", "examples"):
            return None
        from importlib.util import spec_from_file_location
        from pathlib import Path
        source = Path(__file__).resolve().parent.parent / folder / "__init__.py"
        if not source.exists():
            return None
        return spec_from_file_location(name, source, submodule_search_locations=[str(source.parent)])


sys.meta_path.append(_FindInClone)
