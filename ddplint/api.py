"""The program as a function: objects in, report out.

    report = ddplint.lint(Net, loss=my_loss, batches={"typical": batch, "night": make_night_batch})
"""

import functools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from ddplint.errors import SpecError
from ddplint.report import Report
from ddplint.spec import Spec


def lint(model: Spec | Callable | Mapping[str, Any], *, batches: Any = None, loss: Any = None, **sections: Any) -> Report:
    """Run the scenarios under real DDP and judge what was seen; torch is imported in the ranks only.

    ``model`` makes the model (or is a whole Spec). ``batches`` is a batch, or a function that makes one (given rank,
    step, world_size and seed where it has such parameters), or either of them by scenario name; a scenario may also be
    what it is in YAML. ``loss(outputs, batch)`` gives a scalar, a mapping of terms, or (total, mapping); without it the
    model returns its loss. Any other section of a spec is a keyword: ``run={"world_size": 4}``, ``optimizer=torch.optim.AdamW``.
    The ranks are other processes, which import what they call: functions and classes at the top level of a module, as
    they are or in a functools.partial with plain keywords.
    """
    from ddplint.check import check
    from ddplint.record import record
    if isinstance(model, Spec):
        return check(record(model, None), model.judgement)
    if batches is None and "scenario" not in sections:
        raise SpecError("no batches", hint="batches=BATCH, or a function that makes one")
    with tempfile.TemporaryDirectory(prefix="ddplint-") as folder:
        spec = _spec({"model": model, "loss": {"terms": loss}, "scenario": _scenarios(batches, Path(folder)), **sections})
        return check(record(spec, None), spec.judgement)


def _spec(sections: dict[str, Any]) -> Spec:
    import yaml

    from ddplint.compose import parse
    from ddplint.rules import catalogue
    shipped = resources.files("ddplint.configs").joinpath("checklist", "recommended.yaml")
    checklist = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    container = {key: _plain(value, key) for key, value in sections.items() if value is not None}
    container["checklist"] = checklist | (container.get("checklist") or {})
    return parse(container, folder=os.getcwd(), installed=list(catalogue()))


def _scenarios(batches: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(batches, Mapping) or _is_batch(batches):
        batches = {"typical": batches}
    return {name: _scenario(value, folder / f"{i}.pt") for i, (name, value) in enumerate(batches.items())}


def _scenario(value: Any, file: Path) -> Any:
    if callable(value):
        return {"batch": value}
    if not _has_tensors(value):
        return value
    sys.modules["torch"].save(value, file)      # who has a tensor has torch
    return {"file": str(file)}


def _is_batch(value: Mapping) -> bool:
    """Whether a mapping is one batch, for a tensor stands in it by itself; else its values are scenarios."""
    return any(_is_tensor(item) for item in value.values())


def _has_tensors(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return _is_tensor(value) or any(_has_tensors(part) for part in parts)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _plain(value: Any, where: str) -> Any:
    """As it would stand in YAML: functions and classes by their names."""
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, functools.partial):
        if value.args:
            raise SpecError("a partial with positional arguments", where=where, hint="give them by name")
        return _plain(value.func, where) | _plain(value.keywords, where)
    return {"_target_": _path(value, where)} if callable(value) else value


def _path(target: Callable, where: str) -> str:
    """The dotted path at which a rank finds it."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", "")
    if module == "__main__":
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem      # a rank imports the script by its name
    if not module or not name or "<" in name:
        raise SpecError(f"the ranks, which are other processes, cannot import {target!r}", where=where,
                        hint="a function or class at the top level of a module")
    return f"{module}.{name}"
