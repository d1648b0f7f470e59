"""Two weights that are meant to be one."""

from ddplint.evidence import Cause
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import listed
from ddplint.views import ScenarioView


@rule(severity="error", checks="ties", specific=36)
def broken_weight_tie(scenario: ScenarioView) -> list[Problem]:
    """Names that shared one parameter, or are declared tied, no longer do.

    Why it matters
        Each copy trains on its own; the configuration still says "tied", and on the next load one of them overwrites the
        other. No one raises.

    Bad
        self.lm_head = copy.deepcopy(self.embedding)         # and the config says tie_word_embeddings

    Good
        self.lm_head.weight = self.embedding.weight

    When it is fine
        Independent copies are wanted (an EMA, a frozen teacher): freeze the copy, or take the declaration away.
    """
    found = {tuple(tie.names): tie for rank in scenario.ranks for tie in rank.ties}
    found |= {tuple(names): None for names in scenario.model.ties if tuple(names) not in found}
    return [Problem(
        f"{listed(list(names))} are no longer one parameter",
        cause=(scenario.cause(f"tie:{names[0]}") if tie and not tie.place else None)
        or Cause("broken-tie", tie.how if tie else "they shared memory before", tie.place if tie else None),
        remedy=f"tie them again before DDP is built: {names[-1]} = {names[0]}",
        parameters=list(names),
        about=tuple(f"tie:{name}" for name in names),
        covers=tuple(f"shared:{name}" for name in names),
    ) for names, tie in found.items()]
