"""Tensors to be trained that nn.Module does not know as parameters: where they are kept, and what they are called."""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ddplint.record.source import is_own_file

CONTAINERS = (list, tuple, set, dict)
_TORCH_ATTRIBUTES = set(vars(nn.Module()))


def hidden(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and plain leaf tensors that want a gradient, in attributes of the model that register none: containers, plain objects, buffers."""
    registered = {id(p) for p in model.parameters()}
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for name, value in (vars(module) | module._buffers).items():
            if not name.startswith("_") or name not in _TORCH_ATTRIBUTES:
                path = f"{prefix}.{name}" if prefix else name
                yield from ((found, p) for found, p in inside(path, value, seen) if id(p) not in registered)


def derived(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Parameters that live on only in what was computed from them: ``self.scale = nn.Parameter(...) * 0.1``."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                yield from ((f"{prefix}.{name}" if prefix else name, leaf) for leaf in _leaves(value.grad_fn) if isinstance(leaf, nn.Parameter))


def _leaves(node: Any, most: int = 100) -> Iterator[torch.Tensor]:
    todo = [node]
    for _ in range(most):
        if not todo:
            return
        node = todo.pop()
        if hasattr(node, "variable"):
            yield node.variable
        todo += [after for after, _ in node.next_functions if after is not None]


def name_outside(tensor: torch.Tensor, outside: dict[int, str]) -> str:
    """What is called that no attribute of the model holds; ``outside`` knows the names of the loss's own."""
    return outside.get(id(tensor)) or _global_name(tensor) or nameless(tensor)


def nameless(tensor: torch.Tensor) -> str:
    return f"{'parameter' if isinstance(tensor, nn.Parameter) else 'tensor'} of shape {list(tensor.shape)}"


def _global_name(tensor: torch.Tensor) -> str | None:
    """Its dotted path, where the globals of the user's own modules hold it, such as ``CRITERION.W``."""
    for module in list(sys.modules.values()):
        if not is_own_file(getattr(module, "__file__", None) or "<none>"):
            continue
        seen: set[int] = set()
        for name, value in list(vars(module).items()):
            for path, found in inside(name, value, seen):
                if found is tensor:
                    return path
    return None


def inside(path: str, value: Any, seen: set[int], depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors to be trained in a value: itself, or what modules, containers and objects of the user's classes hold."""
    if isinstance(value, torch.Tensor):
        if isinstance(value, nn.Parameter) or (value.requires_grad and value.is_leaf):
            yield path, value
    elif isinstance(value, nn.Module) and id(value) not in seen:
        seen.add(id(value))
        yield from ((f"{path}.{name}", p) for name, p in value.named_parameters())
    elif depth < 4 and id(value) not in seen and (items := _items(value)):
        seen.add(id(value))
        for key, item in items:
            yield from inside(f"{path}.{key}", item, seen, depth + 1)


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, CONTAINERS):
        return list(value.items() if isinstance(value, dict) else enumerate(value))
    own = not isinstance(value, type) and is_own_file(getattr(sys.modules.get(type(value).__module__), "__file__", None) or "<none>")
    return list(vars(value).items()) if own and hasattr(value, "__dict__") else []
