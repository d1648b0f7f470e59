"""Findings that the user has looked at and keeps, each with a reason."""

from ddplint.check.globs import globs
from ddplint.check.raised import Raised
from ddplint.spec import Acceptance


def accept(raised: list[Raised], acceptances: tuple[Acceptance, ...]) -> list[str]:
    """Mark what is accepted; returns the acceptances that matched nothing."""
    unmatched = []
    for acceptance in acceptances:
        matched = [one for one in raised if _fits(acceptance, one)]
        for one in matched:
            one.accepted = one.accepted or acceptance.because
        if not matched:
            unmatched.append(f"{acceptance.rule} {acceptance.match}")
    return unmatched


def _fits(acceptance: Acceptance, one: Raised) -> bool:
    if one.rule.name != acceptance.rule:
        return False
    if acceptance.scenarios and not set(one.scenarios) <= set(acceptance.scenarios):
        return False
    wanted = globs((acceptance.match,))
    return all(wanted.matches(name) for name in one.subjects)
