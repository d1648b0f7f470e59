"""A part of the model that never runs."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import count
from ddplint.views import ModuleView


@rule(severity="warning", checks=("model", "calls"), specific=45)
def uncalled_module(module: ModuleView) -> Problem | None:
    """A module with trainable parameters that no scenario calls and no operation reads.

    Why it matters
        It costs memory and optimizer state on every rank, is broadcast and saved, and DDP waits for its gradients.

    Bad
        self.norm_mid = nn.LayerNorm(dim)                    # built for an option that is off

    Good
        self.norm_mid = nn.LayerNorm(dim) if attend_at_middle else nn.Identity()

    When it is fine
        A scenario that calls it is missing from the lint: add that scenario.
    """
    parent = module.parent
    names, scenarios = module.parameters, module.scenarios
    if not scenarios or not module.idle or (parent is not None and parent.idle):
        return None
    cause = next((c for s in scenarios for n in names if (c := s.cause(f"module:{module.name}", f"parameter:{n}"))), None)
    return Problem(
        f"called in none of {count(len(scenarios), 'scenario')}; {count(len(names), 'trainable parameter')}",
        cause=cause or Cause("module-not-called", f"{module.name} is not called", module.place, module=module.name),
        remedy=f"call {module.name}, do not build it, or freeze it; or add the scenario that needs it",
        parameters=names,
        scenarios=[scenario.name for scenario in scenarios],
        about=tuple(f"parameter:{name}" for name in names),
    )
