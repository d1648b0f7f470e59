"""``{from: NAME}``: a section of the user's own configuration, read as what the spec needs there.

``scenario.NAME.batch: {from: data}`` takes the batches of the project's own data module or loader; ``ddp: {from:
trainer}`` takes DDP's keywords from a Lightning trainer or Hugging Face TrainingArguments, in the config or in a file.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ddplint.compose import fields
from ddplint.errors import SpecError

Find = Callable[[str, str], Any]
"""(dotted name, where it was asked for) -> that section, resolved; SpecError where there is none."""

BATCHES = "ddplint.generators.train_batches"
HUGGING_FACE = {"ddp_find_unused_parameters": "find_unused_parameters", "ddp_bucket_cap_mb": "bucket_cap_mb",
                "ddp_broadcast_buffers": "broadcast_buffers", "ddp_static_graph": "static_graph"}
LIGHTNING = ("find_unused_parameters", "static_graph", "gradient_as_bucket_view", "bucket_cap_mb", "broadcast_buffers")


def borrowed(container: dict[str, Any], find: Find) -> dict[str, Any]:
    """The sections of a spec with every ``from`` replaced."""
    scenario, ddp = container.get("scenario"), container.get("ddp")
    if isinstance(scenario, dict):
        container["scenario"] = {name: _batches(item, f"scenario.{name}", find) for name, item in scenario.items()}
    if isinstance(ddp, dict) and "from" in ddp:
        container["ddp"] = _ddp(dict(ddp), find)
    return container


def _batches(scenario: Any, where: str, find: Find) -> Any:
    batch = scenario.get("batch") if isinstance(scenario, dict) else None
    if not isinstance(batch, dict) or set(batch) != {"from"}:
        return scenario
    section = find(fields.text(batch["from"], f"{where}.batch.from"), f"{where}.batch.from")
    source = fields.node(section, batch["from"])
    return {**{key: value for key, value in scenario.items() if key != "batch"},
            "loader": {"_target_": BATCHES, "source": source}}


def _ddp(ddp: dict[str, Any], find: Find) -> dict[str, Any]:
    """What the section says holds wherever the spec itself leaves DDP's default."""
    name = fields.text(ddp.pop("from"), "ddp.from")
    section = _file(name) if name.endswith((".json", ".yaml", ".yml")) else find(name, "ddp.from")
    said = keywords(fields.mapping(section, name))
    if said is None:
        raise SpecError(f"'{name}' has neither a strategy nor ddp_* keys", where="ddp.from",
                        hint="a Lightning trainer, or Hugging Face TrainingArguments")
    return ddp | {key: value for key, value in said.items() if not ddp.get(key)}


def keywords(section: dict[str, Any]) -> dict[str, Any] | None:
    """DDP's keywords as the section's own trainer would pass them; None where it is no trainer's."""
    target = str(section.get("_target_", ""))
    if "strategy" in section or target.endswith(".Trainer"):
        return _lightning(section)
    if any(key.startswith("ddp_") for key in section) or target.endswith("TrainingArguments") or "output_dir" in section:
        return _hugging_face(section)
    return None


def _lightning(section: dict[str, Any]) -> dict[str, Any]:
    strategy, said = section.get("strategy") or "auto", {}
    if isinstance(strategy, dict):
        said = {key: strategy[key] for key in LIGHTNING if key in strategy}
    elif "find_unused_parameters_" in strategy:         # ddp_find_unused_parameters_true
        said = {"find_unused_parameters": strategy.endswith("true")}
    return said | ({"sync_batchnorm": True} if section.get("sync_batchnorm") else {})


def _hugging_face(section: dict[str, Any]) -> dict[str, Any]:
    """transformers.Trainer looks for unused parameters unless told not to, or gradients are checkpointed."""
    said = {ours: section[theirs] for theirs, ours in HUGGING_FACE.items() if section.get(theirs) is not None}
    return {"find_unused_parameters": not section.get("gradient_checkpointing", False)} | said


def _file(name: str) -> Any:
    try:
        text = Path(name).read_text(encoding="utf-8")
        return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
    except OSError as error:
        raise SpecError(f"{name} cannot be read ({error.strerror})", where="ddp.from") from error
    except (ValueError, yaml.YAMLError) as error:
        raise SpecError(f"{name} is not valid: {str(error).splitlines()[0]}", where="ddp.from") from error
