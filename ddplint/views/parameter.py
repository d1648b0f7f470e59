"""One parameter in one scenario."""

import functools
from typing import TYPE_CHECKING

from ddplint.evidence import NONE, NONFINITE, NONZERO, UNSEEN, ZERO, Cause

if TYPE_CHECKING:
    from ddplint.views.scenario import ScenarioView

At = tuple[int, int]
"""(rank, step)."""


class ParameterView:
    """A parameter as DDP got it, and what its local gradients were on every rank in every step of one scenario."""

    kind = "parameters"

    def __init__(self, scenario: "ScenarioView", position: int):
        self.scenario, self.position = scenario, position
        self.parameter = scenario.model.parameters[position]

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def module(self) -> str:
        """The module that owns it."""
        return self.parameter.module or self.name.rpartition(".")[0]

    @property
    def trainable(self) -> bool:
        """requires_grad when DDP was built."""
        return self.parameter.trainable

    @property
    def shape(self) -> list[int]:
        return self.parameter.shape

    @property
    def ndim(self) -> int:
        return len(self.parameter.shape)

    @property
    def numel(self) -> int:
        return self.parameter.numel

    @property
    def aliases(self) -> list[str]:
        return self.parameter.aliases

    @property
    def initialized(self) -> bool:
        return self.parameter.initialized

    @property
    def ddp(self) -> dict:
        return self.scenario.ddp

    @property
    def world_size(self) -> int:
        return self.scenario.world_size

    @property
    def cause(self) -> Cause | None:
        """Why it got no gradient (or a zero or non-finite one), where a cause was looked for."""
        return self.scenario.cause(f"parameter:{self.name}")

    # ------------------------------------------------------------------ gradients

    @functools.cached_property
    def _states(self) -> dict[At, str]:
        return {at: s for at, s in self.scenario.use.states(self.position).items() if s != UNSEEN}

    def _at(self, states: str) -> list[At]:
        return [at for at, state in self._states.items() if state in states]

    @functools.cached_property
    def used_at(self) -> list[At]:
        """Each (rank, step) with a gradient, whatever its value."""
        return self._at(ZERO + NONZERO + NONFINITE)

    @functools.cached_property
    def missing_at(self) -> list[At]:
        return self._at(NONE)

    @property
    def zero_at(self) -> list[At]:
        """Where the gradient was exactly zero."""
        return self._at(ZERO)

    @property
    def nonfinite_at(self) -> list[At]:
        return self._at(NONFINITE)

    @property
    def used_on(self) -> list[int]:
        """The ranks that got a gradient in any step."""
        return sorted({rank for rank, _ in self.used_at})

    @property
    def ranks(self) -> list[int]:
        """The ranks whose gradients were observed."""
        return sorted({rank for rank, _ in self._states})

    @property
    def steps(self) -> list[int]:
        return sorted({step for _, step in self._states})

    @property
    def divergent_at(self) -> list[At]:
        """Each (rank, step) without a gradient while another rank got one in the same step."""
        used = {step for _, step in self.used_at}
        return [(rank, step) for rank, step in self.missing_at if step in used]

    @property
    def unreduced_at(self) -> list[At]:
        """Where a step had a gradient, but a backward that DDP was armed for had none (accumulation, several backwards)."""
        return self.scenario.unreduced.get(self.position, [])

    def share(self, rank: int) -> float | None:
        """The share of the observed steps in which this rank got a gradient; None where none was observed."""
        steps = [at for at in self._states if at[0] == rank]
        return sum(at[0] == rank for at in self.used_at) / len(steps) if steps else None

    @property
    def size(self) -> float:
        """The largest absolute value of its local gradient, over all ranks and steps."""
        return self.scenario.sizes[self.position] if self.scenario.sizes else 0.0

    @property
    def relative_size(self) -> float | None:
        """``size`` over the median of all parameters that got a gradient."""
        median = self.scenario.median_size
        return self.size / median if median and self.scenario.sizes else None

    @property
    def always_zero(self) -> bool:
        """There were gradients, all of exactly zero."""
        return bool(self.zero_at) and not self._at(NONZERO + NONFINITE)

    @property
    def siblings(self) -> list["ParameterView"]:
        """The other trainable parameters of its module."""
        return [self.scenario.parameter(i) for i in self.scenario.by_module.get(self.module, ()) if i != self.position]

    @property
    def used_in(self) -> list[str]:
        """The other scenarios of this model in which it gets a gradient somewhere."""
        return self.scenario.run.used_in(self.scenario, self.position)

    # ------------------------------------------------------------------ reach

    @functools.cached_property
    def outputs(self) -> list[str]:
        """The outputs that depend on it, in any step."""
        return self.scenario.graphs.outputs_behind(self.position)

    @functools.cached_property
    def terms(self) -> list[str]:
        """The terms that depend on it through the graph, in any step."""
        return self.scenario.graphs.terms_reaching(self.position)

    def lost_outputs(self, at: list[At]) -> list[str]:
        """The outputs that depended on it at these (rank, step) without arriving at the total."""
        return self.scenario.graphs.lost_outputs(self.position, at)

    def lost_terms(self, at: list[At]) -> list[str]:
        """The terms that reach it elsewhere and stood without a graph, or did not stand at all, at these (rank, step)."""
        return self.scenario.graphs.lost_terms(self.position, at)
