"""A composed mapping turned into a Spec, or a SpecError that says what, where and what to type."""

import difflib
from collections.abc import Collection
from typing import Any

from ddplint.compose import fields
from ddplint.compose.judgement import judgement, report_options
from ddplint.compose.scenarios import scenarios
from ddplint.errors import SpecError
from ddplint.spec import Judgement, Loss, ReportOptions, Run, Spec

KEYS = ("model", "forward", "loss", "optimizer", "step", "scenario", "ddp", "run", "rules", "checklist", "accept",
        "report", "evidence")


def parse(container: dict[str, Any], *, folder: str, installed: Collection[str]) -> Spec:
    """The Spec of a composed, resolved mapping.

    ``folder`` is where the lint was started, ``installed`` the names of the installed rules. Root keys that are not
    ours, and do not look as if they were meant to be, are the user's own and passed over.
    """
    check_root(container)
    if container.get("model") is None:
        raise SpecError("no model", hint="+model=NAME")
    found = scenarios(container.get("scenario") or {})
    searches = [found.pop(name) for name, scenario in list(found.items()) if scenario.budget is not None]
    if searches and not found:
        raise SpecError("explore has no scenario to start from", hint="+scenario=[NAME,explore]")
    if not found:
        raise SpecError("no scenario", hint="+scenario=NAME, or a mapping `scenario:` in the model's file")
    return Spec(
        model=fields.node(container["model"], "model"),
        forward=_optional(container, "forward", _forward),
        loss=_loss(container.get("loss") or {}),
        optimizer=_optional(container, "optimizer", fields.node),
        step=_optional(container, "step", fields.node),
        scenarios=found,
        lint=tuple(found),
        explore=sum(search.budget for search in searches),
        ddp=fields.mapping(container.get("ddp") or {}, "ddp"),
        run=Run(**fields.read(container.get("run") or {}, "run", _RUN)),
        judgement=parse_judgement(container, installed),
        report=parse_report(container),
        folder=folder,
    )


def parse_judgement(container: dict[str, Any], installed: Collection[str]) -> Judgement:
    """Only how evidence is judged: enough for ``ddplint evidence=run.json``."""
    return judgement(container, installed)


def parse_report(container: dict[str, Any]) -> ReportOptions:
    return report_options(container.get("report") or {})


def check_root(container: dict[str, Any]) -> None:
    """A root key that resembles one of ours is a slip; any other is the user's own."""
    for key in container:
        near = difflib.get_close_matches(str(key), KEYS, 1, cutoff=0.8)
        if key not in KEYS and near:
            raise SpecError(f"unknown key '{key}'", hint=f"did you mean '{near[0]}'?")


def _optional(container: dict[str, Any], key: str, reader: fields.Reader) -> Any:
    return None if container.get(key) is None else reader(container[key], key)


def _forward(value: Any, where: str) -> Any:
    if fields.is_node(value):
        return fields.node(value, where)
    arguments = fields.mapping(value, where)
    return {key: fields.path("batch")(item, f"{where}.{key}") for key, item in arguments.items()}


def _loss(value: Any) -> Loss:
    return Loss(**fields.read(value, "loss", {"terms": _terms, "total": fields.node}))


def _terms(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return fields.path("output", "batch")(value, where)
    if fields.is_node(value):
        return fields.node(value, where)
    if not isinstance(value, dict) or not value:
        raise fields.wrong(value, where, "a path, a mapping of terms, or _target_", "output.loss")
    return {name: _term(item, f"{where}.{name}") for name, item in fields.mapping(value, where).items()}


def _term(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return fields.path("output", "batch")(value, where)
    if isinstance(value, dict) and "path" in value and "_target_" not in value:
        return fields.read(value, where, {"path": fields.path("output", "batch"), "weight": fields.number})
    found = fields.node(value, where)
    if "weight" in found:
        found["weight"] = fields.number(found["weight"], f"{where}.weight")
    if not isinstance(found.get("args", []), list):
        raise fields.wrong(found["args"], f"{where}.args", "a list", "args: [output.cls, batch.label]")
    fields.mapping(found.get("kwargs", {}), f"{where}.kwargs")
    return found


_RUN = {
    "world_size": fields.whole(1),
    "steps": fields.whole(1),
    "device": fields.choice("auto", "cpu", "cuda"),
    "backend": fields.choice("auto", "gloo", "nccl"),
    "timeout": fields.positive,
    "seed": fields.whole(0),
    "engine": fields.choice("local", "torchrun", "simulate"),
    "try_settings": fields.flag,
    "try_remedies": fields.flag,
    "reference": fields.flag,
    "by_term": fields.flag,
    "explore": lambda value, where: fields.read(value, where, {"budget": fields.whole(1)}),
    "real": fields.texts,
    "causes": fields.flag,
}
