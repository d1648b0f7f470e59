"""Two rules must not tell one fault twice: per scenario the more specific one speaks, the other is counted."""

from ddplint.check.raised import Raised

FAILURE = "failure:"
"""How the subject of a failure under DDP begins."""


def explain(raised: list[Raised]) -> None:
    """Set ``explained_by``, ``explains``, ``ends_ddp``. A problem is explained where more specific ones tell all it is about."""
    told: dict[str, dict[str, tuple[int, Raised]]] = {}
    """Scenario -> subject -> (how specific, who tells it)."""
    for one in sorted(raised, key=lambda r: -r.specific):
        speaker = _speaker(one, told)
        teller = speaker or one
        teller.ends_ddp = teller.ends_ddp or any(subject.startswith(FAILURE) for subject in one.about)
        if speaker is not None:
            one.explained_by = speaker
            one.accepted = one.accepted or speaker.accepted
            speaker.explains[one.rule.name] = speaker.explains.get(one.rule.name, 0) + 1
            continue
        for scenario in one.scenarios:
            subjects = told.setdefault(scenario, {})
            for subject in _tells(one):
                subjects.setdefault(subject, (one.specific, one))


def _tells(one: Raised) -> list[str]:
    subjects = [*one.about, *one.problem.covers]
    place = one.problem.cause.place if one.problem.cause else None
    if place is not None:
        subjects.append(f"line:{place.file}:{place.line}")
    # Who accepts a finding has not accepted that the job dies of it.
    return subjects if one.accepted is None else [s for s in subjects if not s.startswith(FAILURE)]


def _speaker(one: Raised, told: dict[str, dict[str, tuple[int, Raised]]]) -> Raised | None:
    """The first teller, where in every scenario all that ``one`` is about is told by more specific rules."""
    first = None
    for scenario in one.scenarios:
        for subject in one.about:
            specific, teller = told.get(scenario, {}).get(subject, (-1, None))
            if teller is None or specific <= one.specific:
                return None
            first = first or teller
    return first
