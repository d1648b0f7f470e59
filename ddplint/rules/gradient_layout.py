"""A gradient that does not lie as its bucket does."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView


@rule(severity="warning", checks=("gradients", "layouts"), specific=12)
def gradient_layout(scenario: ScenarioView, *, elements: int = 1_000_000) -> list[Problem]:
    """A gradient's strides differ from those of DDP's bucket: an extra copy in every step.

    Why it matters
        Only slow, never wrong: DDP copies the gradient into its bucket and back in every step, which can eat what
        channels_last or a transposed weight has gained.

    Bad
        weight = self.weight.t().contiguous()                # the gradient comes back transposed

    Good
        Build the parameter in the layout in which it is used (model.to(memory_format=torch.channels_last) before the wrap).

    When it is fine
        Small parameters: the copy costs nothing that can be measured.

        Option: ``elements``, how many scalars must be copied for the finding.
    """
    layouts = {rank.rank: rank.layouts for rank in scenario.ranks if rank.layouts}
    names = {name for names in layouts.values() for name in names}
    strided = [p for p in scenario.model.parameters if p.name in names]
    if not strided or sum(p.numel for p in strided) < elements:
        return []
    return [Problem(
        "the gradient is strided unlike DDP's bucket: one more copy in every step",
        cause=scenario.cause("layout:") or Cause("layout", "the operation that makes the gradient gives it another layout"),
        remedy="build the parameter in the layout it is used in, before DDP is built",
        parameters=[p.name for p in strided],
        ranks=sorted(layouts),
        about=("layout",),
    )]
