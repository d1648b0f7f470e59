"""The graph ends before it reaches the parameter."""

from ddplint.rules.base import Problem, rule
from ddplint.rules.words import remedy_for, unfinished
from ddplint.views import ParameterView


@rule(severity="error", checks="gradients", specific=76, among="unused")
def severed_graph(parameter: ParameterView) -> Problem | None:
    """A cut (detach, item, argmax, no_grad) lies between a parameter and the loss it was meant for.

    Why it matters
        The numbers flow, the gradients do not: the loss falls while this part keeps its initial values. DDP calls the
        parameter unused, which it is not.

    Bad
        z_q = x + (z - x).detach()
        codebook_loss = mse_loss(z_q, x.detach())            # z occurs only inside detach()

    Good
        codebook_loss = mse_loss(z, x.detach())

    When it is fine
        Targets, teachers and statistics are cut on purpose: freeze what only they depend on.
    """
    cause = parameter.cause
    if parameter.used_on or not parameter.trainable or cause is None or cause.kind != "severed":
        return None
    outputs = parameter.outputs or cause.outputs
    return Problem(
        "no gradient: cut off from the loss" + (f" by {cause.operation}" if cause.operation else ""),
        cause=cause,
        remedy=remedy_for(cause),
        outputs=outputs,
        terms=sorted({*parameter.terms, *cause.terms}),
        ranks=parameter.ranks,
        steps=parameter.steps,
        covers=(*unfinished(parameter.scenario), f"untrained:{parameter.name}", *(f"output:{name}" for name in outputs)),
    )
