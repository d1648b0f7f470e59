"""The reducer waits for a gradient that never comes."""

from ddplint.rules.base import Problem, rule
from ddplint.rules.words import cause_of, remedy_for, unfinished
from ddplint.views import ParameterView


@rule(severity="error", checks="gradients", specific=60, among="unused")
def unused_parameter(parameter: ParameterView) -> Problem | None:
    """A trainable parameter gets no gradient on any rank.

    Why it matters
        DDP waits for the gradient of every parameter that was trainable when it was built. Where one never comes it
        raises "Expected to have finished reduction" at the next forward, after a step on gradients that were never
        averaged. find_unused_parameters=True silences this and hides for ever that the parameter does not train.

    Bad
        def forward(self, x):
            features = self.backbone(x)
            return {"cls": self.cls_head(features), "seg": self.seg_head(features)}
        loss = cross_entropy(out["cls"], label)          # nothing reads out["seg"]

    Good
        loss = cross_entropy(out["cls"], label) + cross_entropy(out["seg"], mask)

    When it is fine
        The parameter waits for a later phase of the training: freeze it (requires_grad_(False)) until then, before DDP
        is built. With find_unused_parameters=True a parameter that another scenario uses is only a note.
    """
    if parameter.used_on or not parameter.trainable:
        return None
    cause = parameter.cause or cause_of(parameter)
    elsewhere, covered = parameter.used_in, parameter.scenario.finds_unused
    outputs = parameter.outputs or cause.outputs
    return Problem(
        f"no gradient on any of {parameter.world_size} ranks" if parameter.world_size > 1 else "no gradient",
        cause=cause,
        remedy="find_unused_parameters=True covers this: other scenarios use it" if elsewhere and covered
        else remedy_for(cause) + (", or set ddp.find_unused_parameters=true" if elsewhere else ""),
        severity="note" if elsewhere and covered else None,
        outputs=outputs,
        terms=sorted({*parameter.terms, *cause.terms}),
        ranks=parameter.ranks,
        steps=parameter.steps,
        covers=(*unfinished(parameter.scenario), f"untrained:{parameter.name}", *(f"output:{name}" for name in outputs)),
    )
