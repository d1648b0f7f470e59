"""DDP counts on the same set of gradients in every step."""

from ddplint.rules.base import Problem, rule
from ddplint.rules.words import cause_of, ranks_and_steps, unfinished
from ddplint.views import ParameterView

COMPUTE = "compute it in every step (with weight 0 where it must not count)"
TOGGLED = "leave requires_grad on and detach() what must not train, wrap each network in a DDP of its own"


@rule(severity="error", checks="gradients", specific=69, among="unsteady")
def varying_usage(parameter: ParameterView) -> Problem | None:
    """A parameter gets a gradient in some steps (or backwards) of one scenario and none in others.

    Why it matters
        Without find_unused_parameters the first step without the gradient makes the next forward raise. static_graph
        takes the first step's set for all steps and fails or goes wrong when it changes.

    Bad
        if step >= warmup:
            loss = loss + attribute_loss(out["attributes"])

    Good
        weight = float(step >= warmup)
        loss = loss + weight * attribute_loss(out["attributes"])

    When it is fine
        With find_unused_parameters=True and without static_graph: then this rule is silent.
    """
    scenario = parameter.scenario
    missing = parameter.missing_at or parameter.unreduced_at
    if not missing or not parameter.used_at or (scenario.finds_unused and not scenario.static):
        return None
    cause = parameter.cause or cause_of(parameter)
    outputs = sorted({*parameter.lost_outputs(missing), *cause.outputs})
    return Problem(
        f"no gradient in {{steps}}, but in others of {len(parameter.steps)} steps" if parameter.missing_at
        else "no gradient in a backward that DDP reduces, only in others of {steps}",
        cause=cause,
        remedy=(TOGGLED if cause.kind == "frozen" else COMPUTE) + ", or set "
        + ("static_graph=false and " if scenario.static else "") + "ddp.find_unused_parameters=true",
        outputs=outputs,
        terms=sorted({*parameter.lost_terms(missing), *cause.terms}),
        **ranks_and_steps(missing),
        covers=(*unfinished(scenario), *(f"output:{name}" for name in outputs)),
    )
