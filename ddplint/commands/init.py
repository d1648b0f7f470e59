"""``ddplint init my_pkg.models:MyModel`` (or the name of a model's config): a commented spec to start from, on stdout."""

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from ddplint.errors import DdplintError

if TYPE_CHECKING:
    from ddplint.record.starter import Draft

LEFT = 1
"""The exit status where something is left to fill in."""


def init(argv: list[str]) -> int:
    """Print the spec; what is left to fill in is told on stderr, and makes the status 1."""
    parser = argparse.ArgumentParser(prog="ddplint init", description="A spec to start from, on stdout.")
    parser.add_argument("model", help="my_pkg.models:MyModel, or a name that +model= takes")
    name = parser.parse_args(argv).model
    with _current_folder_importable():
        draft = _draft(name)
    print(starter(draft, name))
    for key, why in draft.open:
        print(f"ddplint: left to fill in: {key}: {why}", file=sys.stderr)
    return LEFT if draft.open else 0


@contextlib.contextmanager
def _current_folder_importable() -> Any:
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(os.getcwd())


def _draft(name: str) -> "Draft":
    node = None if "." in name or ":" in name else _config(name)
    from ddplint.record.starter import draft, silenced
    with silenced():
        return draft(name.replace(":", "."), node)


def _config(name: str) -> dict[str, Any]:
    """The model that ``+model=NAME`` composes."""
    from ddplint.compose.fields import node
    from ddplint.compose.hydra_app import composed
    from ddplint.compose.messages import is_mendable, readable
    try:
        return node(composed([f"+model={name}"]).get("model"), "model")
    except Exception as error:
        if is_mendable(error):
            raise DdplintError(readable(error)) from error
        raise


# ---------------------------------------------------------------------- the text


def starter(draft: "Draft", name: str) -> str:
    """The YAML, each guess marked as one."""
    own_config = "." not in name and ":" not in name
    file = name if own_config else draft.node["_target_"].rpartition(".")[2].lower()
    group = "scenario" if own_config else "model"
    command = f"ddplint +model={file}" + (f" +scenario={file}" if own_config else "")
    lines = ["# @package _global_", f"# A start, guessed from the code. Save it as configs/{group}/{file}.yaml, then: {command}"]
    if not own_config:
        lines += ["model:", *_model(draft)]
    lines += ["", *_loss(draft), "", "scenario:", "  typical:", *_batch(draft)]
    if draft.batch:
        lines += ["  # Scenarios made from it, to switch on:", *_further(draft)]
    return "\n".join(lines)


def _model(draft: "Draft") -> list[str]:
    lines = []
    for key, value in draft.node.items():
        why = next((reason for where, reason in draft.open if where == f"model.{key}"), "")
        note = f"  # {why}" if why else "  # required: a guess" if key in draft.guessed else ""
        lines.append(f"  {key}: {flow(value)}{note}")
    shown = {key: value for key, value in draft.optional.items() if isinstance(value, bool | int | float | str)}
    return lines + [f"  # {key}: {flow(value)}" for key, value in shown.items()]


def _loss(draft: "Draft") -> list[str]:
    if draft.lightning:
        return [f"# The loss is what {draft.signature} returns, the optimizer what configure_optimizers() gives."]
    if draft.terms is None:
        return ["loss:", "  terms: ???  # output.loss, or {name: {_target_: torch.nn.MSELoss, args: [output, batch.y]}}"]
    if isinstance(draft.terms, str):
        notes = {"output.loss": "the model returns its loss", "output": "the model returns its losses",
                 "???": "output.loss, or {name: {_target_: torch.nn.MSELoss, args: [output, batch.y]}}"}
        return ["loss:", f"  terms: {draft.terms}  # {notes[draft.terms]}"]
    return ["# A term for each output, guessed from its shape: put your own losses here.", "loss:", "  terms:",
            *(f"    {key}: {flow(value)}" for key, value in draft.terms.items())]


def _batch(draft: "Draft") -> list[str]:
    if draft.lightning and draft.batch:
        return ["    # Or your data module's own batches: {from: data}, with +data=NAME on the command line.",
                "    batch:", *(f"      - {flow(item)}" for item in draft.batch)]
    if not draft.batch:
        return ["    batch: ???  # {x: {shape: [4, 16], normal: [0, 1]}}, or {_target_: my_pkg.one_batch}"]
    described = f"    # {draft.signature} gets the entries that it names." if draft.signature else ""
    return [*([described] if described else []), "    batch:", *(f"      {key}: {flow(value)}" for key, value in draft.batch.items()),
            *(f"      {key}: {flow(value)}  # read by the loss" for key, value in draft.targets.items())]


def _further(draft: "Draft") -> list[str]:
    names = list(draft.batch) + list(draft.targets) if isinstance(draft.batch, dict) else []
    labels = [name for name in names if name.startswith("label")]
    lines = ["batch_of_one: {batch: {_target_: ddplint.generators.batch_of_one, base: typical}}"]
    if labels:
        lines.append(f"one_class: {{batch: {{_target_: ddplint.generators.one_class_only, base: typical, keys: {labels[0]}}}}}")
    if "input_ids" in names:
        lines.append("short: {batch: {_target_: ddplint.generators.short_sequences, base: typical, length: 2}}")
        if labels:
            lines.append(f"ignored: {{batch: {{_target_: ddplint.generators.all_labels_ignored, base: typical, keys: {labels[0]}}}}}")
    return [f"  # {line}" for line in lines]


def flow(value: Any) -> str:
    """One line of YAML."""
    import yaml
    if value == "???":
        return "???"
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).strip()
    return text.removesuffix("\n...").removesuffix("...").strip()


