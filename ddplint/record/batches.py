"""What each rank is fed at each step: scenarios resolved to batches."""

import difflib
import random
from typing import Any

import torch

from ddplint.errors import SpecError
from ddplint.evidence import Place
from ddplint.record.saved import saved_batch
from ddplint.record.source import defined_at
from ddplint.record.targets import build, is_node, locate
from ddplint.spec import Node, Scenario, Spec

GENERATORS = "ddplint.generators."
FILLS = ("normal", "uniform", "integers", "value")


class Feed:
    """The batches of one scenario on one rank.

    ``item(i)`` seeds the RNGs from (seed, rank, i) before it makes batch i, so that ranks draw differently, as in
    training, and any step can be replayed alone.
    """

    def __init__(self, spec: Spec, name: str, rank: int, world_size: int, device: torch.device):
        self.spec, self.name, self.rank, self.world_size, self.device = spec, name, rank, world_size, device
        self._loaders: dict[str, Any] = {}

    def chain(self, item: int) -> list[Scenario]:
        """The scenario, then what it refers to for this rank and item, down to the one that has a source."""
        return self._chain(self.name, item)

    def _chain(self, name: str, item: int) -> list[Scenario]:
        chain = [self.spec.scenarios[name]]
        while chain[-1].ranks or chain[-1].sequence:
            last = chain[-1]
            names, position = (last.ranks, self.rank) if last.ranks else (last.sequence, item)
            chain.append(self.spec.scenarios[names[position % len(names)]])
            if len(chain) > 100:
                raise SpecError("refers to itself", where=f"scenario.{name}")
        return chain

    def item(self, i: int) -> Any:
        seed(self.spec.run.seed, self.rank, i)
        return to_device(self._source(self.chain(i)[-1], i), self.device)

    def _source(self, leaf: Scenario, i: int) -> Any:
        where = f"scenario.{leaf.name}"
        if leaf.loader is not None:
            return self._next(leaf, i, where)
        if leaf.file is not None:
            return saved_batch(self.spec.folder, leaf.file, f"{where}.file")
        return self.make(leaf.batch, i, f"{where}.batch")

    def _next(self, leaf: Scenario, i: int, where: str) -> Any:
        if leaf.name not in self._loaders:
            loader = build(leaf.loader, f"{where}.loader", rank=self.rank, world_size=self.world_size,
                           seed=self.spec.run.seed)
            if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
                raise SpecError(f"'{leaf.loader['_target_']}' returned a {type(loader).__name__}", where=f"{where}.loader",
                                hint="a callable that returns a DataLoader or another iterable")
            self._loaders[leaf.name] = iter(loader)
        try:
            return next(self._loaders[leaf.name])
        except StopIteration:
            made_at = defined_at(locate(leaf.loader["_target_"], f"{where}.loader"))
            raise LoaderEnded(f"the loader of scenario '{leaf.name}' ended before step {i}", made_at) from None

    def make(self, value: Any, i: int, where: str) -> Any:
        """A batch from its description: nodes are called, tensor descriptions drawn, containers walked."""
        if is_node(value):
            made = self._base(value, i, where)
            return build({key: item for key, item in value.items() if key not in made}, where, **made,
                         rank=self.rank, step=i, world_size=self.world_size, seed=self.spec.run.seed)
        if isinstance(value, dict) and "shape" in value:
            return draw(value, where)
        if isinstance(value, dict):
            return {key: self.make(item, i, f"{where}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.make(item, i, f"{where}.{n}") for n, item in enumerate(value)]
        return value

    def _base(self, node: Node, i: int, where: str) -> dict[str, Any]:
        """``base`` of a generator: the batch of the scenario that it names, or of the description that it holds."""
        base = node.get("base")
        if isinstance(base, dict | list):
            return {"base": self.make(base, i, f"{where}.base")}
        if isinstance(base, str) and where.startswith(f"scenario.{base}."):
            raise SpecError("refers to itself", where=f"{where}.base")
        if isinstance(base, str) and base in self.spec.scenarios:
            return {"base": self._source(self._chain(base, i)[-1], i)}
        if isinstance(base, str) and node["_target_"].startswith(GENERATORS):
            near = difflib.get_close_matches(base, self.spec.scenarios, 1)
            raise SpecError(f"no scenario is called '{base}'", where=f"{where}.base",
                            hint=f"did you mean '{near[0]}'?" if near else f"one of {', '.join(self.spec.scenarios)}")
        return {}


class ProgramError(RuntimeError):
    """A fault of the user's program that ddplint itself finds while it runs it."""


class LoaderEnded(ProgramError):
    """A loader has fewer batches than the lint has steps (raised in place of StopIteration, which callers swallow)."""

    def __init__(self, message: str, places: list[Place]):
        super().__init__(message)
        self.places = places
        """Where the user's function that makes the loader stands."""


def seed(run_seed: int, rank: int, item: int) -> None:
    """Seed Python's, numpy's (where it is loaded) and torch's generators."""
    value = (run_seed * 1_000_003 + rank * 7_919 + item * 104_729) % 2**32
    random.seed(value)
    torch.manual_seed(value)
    import sys
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value)


def draw(description: dict[str, Any], where: str) -> torch.Tensor:
    """A tensor from ``{shape, dtype?, normal: [mean, std] | uniform: [low, high] | integers: [low, high] | value}``."""
    fills = [key for key in FILLS if key in description]
    unknown = sorted(set(description) - {"shape", "dtype", *FILLS})
    if unknown or len(fills) > 1:
        raise SpecError(f"a tensor has {' and '.join(unknown or fills)}", where=where,
                        hint=f"shape, dtype and one of {', '.join(FILLS)}")
    try:
        return _drawn(description, fills[0] if fills else "normal", _dtype(description.get("dtype"), where))
    except (TypeError, ValueError, RuntimeError) as error:
        raise SpecError(f"no such tensor: {str(error).splitlines()[0]}", where=where) from error


def _drawn(description: dict[str, Any], kind: str, dtype: torch.dtype | None) -> torch.Tensor:
    shape = tuple(description["shape"])
    if kind == "integers":
        low, high = description["integers"]
        return torch.randint(low, high, shape, dtype=dtype or torch.int64)
    if kind == "value":
        return torch.full(shape, description["value"], dtype=dtype)
    first, second = description.get(kind, (0, 1))
    drawn = torch.randn(shape) * second + first if kind == "normal" else torch.rand(shape) * (second - first) + first
    return drawn.to(dtype) if dtype else drawn


def _dtype(name: str | None, where: str) -> torch.dtype | None:
    if name is None:
        return None
    dtype = getattr(torch, str(name).removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise SpecError(f"'{name}' is no dtype", where=f"{where}.dtype", hint="float32, bfloat16, int64, bool, ...")
    return dtype


def to_device(value: Any, device: torch.device) -> Any:
    """Move every tensor in tuples, lists and mappings to the device; the CPU leaves all as it is."""
    if device.type == "cpu":
        return value
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, dict):
        return type(value)({key: to_device(item, device) for key, item in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(item, device) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(to_device(item, device) for item in value)
    return value.to(device) if hasattr(value, "to") and not isinstance(value, torch.nn.Module) else value
