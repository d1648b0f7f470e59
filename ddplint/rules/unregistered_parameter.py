"""A parameter that DDP does not know."""

from ddplint.evidence import Cause, Stray
from ddplint.rules.base import Problem, rule
from ddplint.views import ScenarioView
from ddplint.views.changes import took_place

KINDS = {
    "unregistered": ("an attribute of the model that is not registered: a plain list or dict hides it from parameters()",
                     "use nn.ModuleList, nn.ModuleDict or nn.ParameterList"),
    "tensor": ("an attribute of the model that is a plain tensor: requires_grad=True makes it none of parameters()",
               "make it an nn.Parameter (several of them an nn.ParameterList or nn.ParameterDict)"),
    "buffer": ("an attribute of the model that is registered as a buffer, and no buffer is one of parameters()",
               "assign it as an nn.Parameter instead of registering it as a buffer"),
    "derived": ("an attribute of the model is computed from it while the model is built, and is no parameter itself",
                "keep the parameter itself as the attribute, and compute with it in forward()"),
    "created-later": ("created after DDP was built, so it has no gradient hooks",
                      "create it before the model is wrapped and the optimizer is built"),
    "outside": ("it belongs to no part of the wrapped model",
                "make it a part of the wrapped model, or wrap its module in a DistributedDataParallel of its own"),
}


@rule(severity="error", checks="steps", specific=88)
def unregistered_parameter(scenario: ScenarioView) -> list[Problem]:
    """A parameter, or a tensor in the optimizer, gets gradients, but is none of those that DDP was built with.

    Why it matters
        DDP neither broadcasts nor averages it: every rank trains its own copy, and the checkpoint may not hold it at all.

    Bad
        self.mlps = [MLP(dim) for _ in range(4)]             # a plain list

    Good
        self.mlps = nn.ModuleList(MLP(dim) for _ in range(4))

    When it is fine
        A tensor that is optimised per rank on purpose (an adversarial input): a plain tensor that no optimizer holds is no finding.
    """
    strays: dict[str, Stray] = {}
    for rank in scenario.ranks:
        for stray in rank.strays:
            # One that took the place of another is told by changed-after-wrap.
            if (stray.gradient or stray.in_optimizer) and not any(took_place(stray, c) for r in scenario.ranks for c in r.changes):
                strays.setdefault(stray.name, stray)
    groups: dict[tuple, list[Stray]] = {}
    for stray in strays.values():
        place = (stray.place.file, stray.place.line) if stray.place else ()
        groups.setdefault((stray.kind, place), []).append(stray)
    return [_problem(scenario, kind, group) for (kind, _), group in groups.items()]


def _problem(scenario: ScenarioView, kind: str, group: list[Stray]) -> Problem:
    why, remedy = KINDS.get(kind, KINDS["outside"])
    names = [stray.name for stray in group]
    terms = sorted({term for stray in group for term in stray.terms})
    if not terms:
        terms = [term.name for term in scenario.terms if term.contributes_at]
    unheld = [stray for stray in group if not stray.in_optimizer]
    return Problem(
        "gets gradients, but is none of DDP's parameters" + ("; no optimizer holds it either" if unheld else ""),
        cause=scenario.cause(*(f"stray:{name}" for name in names))
        or Cause("outside-ddp", why, group[0].place),
        remedy=remedy,
        parameters=names,
        terms=terms,
        ranks=[rank.rank for rank in scenario.ranks if rank.strays],
        about=tuple(f"stray:{name}" for name in names),
        # What is computed while the model is built has one graph, which the first backward frees.
        covers=("desync", "flag-needed", *(["failure:graph-used-up"] if kind == "derived" else []),
                *(f"parameter:{name}" for name in names), *(f"optimizer:{name}" for name in names)),
    )
