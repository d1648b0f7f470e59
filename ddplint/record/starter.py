"""Tries a model out, alone and without gradients, to guess what a spec for it needs (``ddplint init``)."""

import contextlib
import inspect
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ddplint.record.batches import draw, seed
from ddplint.record.candidates import BATCH, candidates, combinations
from ddplint.record.leaves import leaves
from ddplint.record.lightning import LightningRun, is_lightning
from ddplint.record.targets import build, locate
from ddplint.spec import Node

MISSING = "???"
NUMBERS = (("class", 10), ("label", 10), ("vocab", 100), ("channel", 3), ("layer", 2), ("depth", 2), ("head", 2),
           ("size", 32), ("dim", 32), ("width", 32), ("hidden", 32), ("features", 32))
"""Parts of names of required whole numbers, and what is tried for them."""

NO_CLASSES = ("hidden", "state", "pooler", "embed", "feature")
"""Parts of the names of outputs that are no scores."""


@dataclass
class Draft:
    """What was found out; ``open`` says what is left to fill in: (dotted key, why)."""

    node: Node
    guessed: list[str] = field(default_factory=list)
    optional: dict[str, Any] = field(default_factory=dict)
    """The constructor's other arguments, with their defaults."""
    signature: str = ""
    batch: Any = None
    """Descriptions by name, or a list of them."""
    terms: Any = None
    targets: dict[str, Any] = field(default_factory=dict)
    """Entries of the batch that only the loss reads."""
    lightning: bool = False
    open: list[tuple[str, str]] = field(default_factory=list)


def draft(target: str | None, node: Node | None = None) -> Draft:
    """Guess from a dotted path, or from a model's own config. SpecError where the path leads nowhere."""
    found = Draft(node) if node is not None else _from_target(target)
    seed(0, 0, 0)
    try:
        model = None if MISSING in map(str, found.node.values()) else build(found.node, "model")
    except Exception as error:  # noqa: BLE001 (the user's code; the draft says so)
        found.open.append(("model", f"building it raised {_words(error)}"))
        model = None
    if model is None:
        _by_names_alone(found)
        return found
    if not isinstance(model, nn.Module):
        found.open.append(("model", f"{found.node['_target_']} gives a {type(model).__name__}, not an nn.Module"))
        return found
    found.lightning = is_lightning(model)
    (_try_training_step if found.lightning else _try_forward)(found, model.eval())
    return found


# ---------------------------------------------------------------------- the constructor


def _from_target(path: str) -> Draft:
    target = locate(path, "model")
    found = Draft({"_target_": path})
    if hasattr(target, "config_class") and inspect.isclass(target):           # Hugging Face: a small config of its own
        kind = target.config_class
        found.node["config"] = {"_target_": f"{kind.__module__}.{kind.__qualname__}"}
        layers = next((name for name in ("num_hidden_layers", "num_layers", "n_layer") if _accepts(kind, name)), None)
        found.node["config"] |= {layers: 2} if layers else {}
        return found
    for parameter in _parameters(target):
        if parameter.default is not parameter.empty:
            found.optional[parameter.name] = parameter.default
        elif parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            found.node[parameter.name] = value = _guess(parameter)
            found.guessed.append(parameter.name)
            if value == MISSING:
                found.open.append((f"model.{parameter.name}", f"a required argument{_annotated(parameter)}"))
    return found


def _accepts(kind: type, name: str) -> bool:
    with contextlib.suppress(Exception):
        return hasattr(kind(), name)
    return False


def _parameters(target: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return []


def _annotated(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    return "" if kind is parameter.empty else f" ({kind.__name__ if isinstance(kind, type) else kind})"


def _guess(parameter: inspect.Parameter) -> Any:
    if parameter.annotation in (bool, "bool"):
        return False
    if parameter.annotation in (float, "float"):
        return 0.1
    number = next((n for part, n in NUMBERS if part in parameter.name.lower()), None)
    if parameter.annotation in (int, "int"):
        return number or 8
    return number if parameter.annotation is parameter.empty and number else MISSING


# ---------------------------------------------------------------------- forward


def _by_names_alone(found: Draft) -> None:
    """The model could not be built: what its class's forward names, and no more."""
    found.terms = MISSING
    found.open.append(("loss.terms", "the model was not built, so its outputs are not known"))
    forward = getattr(locate(found.node["_target_"], "model"), "forward", None)
    if forward is not None:
        names = _wanted([p for p in _parameters(forward) if p.name != "self"], nn.Module())[-1]
        found.signature = "forward" + _shown(forward).replace("(self, ", "(").replace("(self)", "()")
        found.batch = {name: candidates(name, nn.Module())[0] for name in names}
        found.open.append(("scenario.typical.batch", "the shapes are guessed from names alone"))


def _try_forward(found: Draft, model: nn.Module) -> None:
    parameters = _parameters(model.forward)
    found.signature = "forward" + _shown(model.forward)
    wanted = _wanted(parameters, model)
    first: Exception | None = None
    for names in wanted:
        for batch in combinations(names, model):
            try:
                outputs = _call(model, batch)
            except Exception as error:  # noqa: BLE001 (one guess of many)
                first = first or error
                continue
            found.batch = batch
            _guess_loss(found, outputs)
            return
    names = wanted[0]
    found.batch = {name: candidates(name, model)[0] for name in names}
    found.open.append(("scenario.typical.batch", f"forward() took none of the guesses; the first raised {_words(first)}"
                       if first else "forward() takes no named argument"))
    found.terms = MISSING
    found.open.append(("loss.terms", "the outputs are not known"))


def _shown(function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    names = [str(p).split(":")[0].split("=")[0].strip() for p in signature.parameters.values()]
    return f"({', '.join(names[:8])}{', ...' if len(names) > 8 else ''})"


def _wanted(parameters: list[inspect.Parameter], model: nn.Module) -> list[list[str]]:
    """Sets of arguments to try: the required ones (the model's main inputs where there are none), with labels first."""
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    every = [p.name for p in named]
    required = [p.name for p in named if p.default is p.empty]
    if not required:
        main = getattr(model, "main_input_name", None)
        required = [main] if main in every else every[:1]
        required += [name for name in ("attention_mask",) if name in every and main == "input_ids"]
    labels = [name for name in ("labels", "targets", "target", "label") if name in every and name not in required][:1]
    return [required + labels, required] if labels else [required]


def _call(model: nn.Module, batch: dict[str, Any]) -> Any:
    seed(0, 0, 0)
    with torch.no_grad():
        return model(**{name: draw(description, name) for name, description in batch.items()})


def _guess_loss(found: Draft, outputs: Any) -> None:
    tensors = {path: tensor for path, tensor, _ in leaves(outputs)}
    if "loss" in tensors and tensors["loss"].numel() == 1:
        found.terms = "output.loss"
    elif tensors and all(tensor.ndim == 0 for tensor in tensors.values()):
        found.terms = "output"
    elif tensors:
        found.terms = {path.replace(".", "_"): _term(found, path, tensor) for path, tensor in list(tensors.items())[:6]}
    else:
        found.terms = MISSING
        found.open.append(("loss.terms", "forward() returned no floating tensor"))


def _term(found: Draft, path: str, output: torch.Tensor) -> dict[str, Any]:
    """Classes along the second dimension for scores [N, C] and maps of them, else the distance to a wanted value."""
    where = "output" if path == "output" else f"output.{path}"
    shape = list(output.shape)
    classes = len(shape) in (2, 4) and shape[1] > 1 and not any(word in path for word in NO_CLASSES)
    name = ("label" if classes else "wanted") + ("" if path == "output" else f"_{path.replace('.', '_')}")
    found.targets[name] = {"shape": [shape[0], *shape[2:]], "integers": [0, shape[1]]} if classes \
        else {"shape": shape, "normal": [0, 1]}
    loss = "torch.nn.functional.cross_entropy" if classes else "torch.nn.functional.mse_loss"
    return {"_target_": loss, "args": [where, f"batch.{name}"]}


# ---------------------------------------------------------------------- training_step


def _try_training_step(found: Draft, model: nn.Module) -> None:
    found.signature = "training_step" + _shown(model.training_step)
    found.batch = [candidates("x", model)[0], {"shape": [BATCH], "integers": [0, 2]}]
    first: Exception | None = None
    try:
        run = LightningRun(model, 0, 1)
        model.log = model.log_dict = lambda *args, **kwargs: None
        for batch in combinations(["x", "label"], model):
            try:
                seed(0, 0, 0)
                run.forward(model, [draw(description, name) for name, description in batch.items()])
            except Exception as error:  # noqa: BLE001 (one guess of many)
                first = first or error
                continue
            found.batch = list(batch.values())
            return
    except Exception as error:  # noqa: BLE001 (setup() and its kind)
        first = error
    found.open.append(("scenario.typical.batch", f"training_step() took none of the guesses; the first raised {_words(first)}"))


# ---------------------------------------------------------------------- helpers


def _words(error: BaseException | None) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """The model's own prints, warnings and progress bars go nowhere, down to the file descriptors."""
    null, kept = os.open(os.devnull, os.O_WRONLY), [os.dup(1), os.dup(2)]
    try:
        for fd in (1, 2):
            os.dup2(null, fd)
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, \
                contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        for fd, old in zip((1, 2), kept, strict=True):
            os.dup2(old, fd)
            os.close(old)
        os.close(null)
