"""One rank waits for gradients that another does not have."""

from ddplint.rules.base import Problem, rule
from ddplint.rules.words import cause_of, ranks_and_steps, unfinished
from ddplint.views import ParameterView


@rule(severity="error", checks=("gradients", "ranks"), specific=70, among="divergent")
def rank_divergent_usage(parameter: ParameterView) -> Problem | None:
    """A parameter gets a gradient on some ranks and none on others, in the same step.

    Why it matters
        Each rank reduces what it has. Without find_unused_parameters the rank that lacks a gradient raises at its next
        forward, or the ranks drift apart; with static_graph the gradients are silently halved. A rank whose loss
        depends on no parameter at all never enters the reduction: the others hang, whatever the flags.

    Bad
        if images is not None:                            # this rank's batch may have none
            hidden = torch.cat([self.vision_tower(images), hidden], 1)

    Good
        images = dummy_image if images is None else images
        hidden = torch.cat([self.vision_tower(images) * has_image, hidden], 1)

    When it is fine
        LayerDrop, stochastic depth and routing under find_unused_parameters=True: there it is a note.
    """
    at = parameter.divergent_at
    if not at:
        return None
    scenario, cause = parameter.scenario, parameter.cause or cause_of(parameter)
    bare = [place for place in at if not scenario.use.any_used_at(*place)]
    outputs = sorted({*parameter.lost_outputs(at), *cause.outputs})
    covered = scenario.finds_unused and not bare
    return Problem(
        "a gradient on some ranks only: none on {ranks} in {steps}"
        + (", where the loss depends on no parameter" if bare else ""),
        cause=cause,
        remedy=_remedy(covered, bool(bare)),
        severity="note" if covered else None,
        outputs=outputs,
        terms=sorted({*parameter.lost_terms(at), *cause.terms}),
        **ranks_and_steps(at),
        covers=(*unfinished(scenario), *(f"output:{name}" for name in outputs), *_bare_covers(bool(bare))),
    )


def _remedy(covered: bool, bare: bool) -> str:
    if covered:
        return "nothing, as long as find_unused_parameters=True stays on"
    if bare:
        return "let the loss of every rank depend on all outputs: add 0 * sum of the outputs"
    return "run the same modules on every rank (add 0 * their output), or set ddp.find_unused_parameters=true"


def _bare_covers(bare: bool) -> tuple[str, ...]:
    return ("loss", "failure:hang", "failure:collective", "failure:collateral", "sequence", "desync") if bare else ()
