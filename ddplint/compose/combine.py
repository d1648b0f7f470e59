"""One judgement for the union of a sweep's jobs, whose specs may differ."""

import dataclasses
from collections.abc import Sequence

from ddplint.evidence import Evidence
from ddplint.evidence_file import name_in_job
from ddplint.spec import SEVERITIES, Acceptance, Item, Judgement, RuleSetting


def combine(judgements: list[Judgement], parts: list[Evidence]) -> Judgement:
    """``judgements[i]`` belongs to ``parts[i]``, whose scenarios already bear their names in the union.

    What only some jobs accept is accepted in their scenarios only. Where jobs disagree on a rule or on ``fail_on``,
    the stricter speaks; of checklist items with one name, the first. Where they name a scenario that several jobs ran,
    all of its names in the union are meant.
    """
    names = [seen.name for part in parts for seen in part.scenarios]
    if all(judgement == judgements[0] for judgement in judgements):
        return _all_named(judgements[0], names)
    return Judgement(
        rules=_rules(judgements),
        checklist=tuple(_item_named(item, names) for item in _items(judgements)),
        accept=tuple(_acceptances(judgements, parts)),
        fail_on=max((j.fail_on for j in judgements), key=SEVERITIES.index),
    )


def _all_named(judgement: Judgement, names: list[str]) -> Judgement:
    return dataclasses.replace(
        judgement, checklist=tuple(_item_named(item, names) for item in judgement.checklist),
        accept=tuple(dataclasses.replace(one, scenarios=_named(one.scenarios, names)) for one in judgement.accept))


def _item_named(item: Item, names: list[str]) -> Item:
    expect = item.expect
    given = (expect or {}).get("scenarios")
    given = [given] if isinstance(given, str) else given
    if isinstance(given, list) and all(isinstance(name, str) for name in given):        # else check/expect.py complains
        expect = expect | {"scenarios": list(_named(given, names))}
    return dataclasses.replace(item, scenarios=_named(item.scenarios, names), expect=expect)


def _named(wanted: Sequence[str], names: list[str]) -> tuple[str, ...]:
    """The scenarios that are wanted, under all the names that they have; as they are where none of them was run."""
    found = {name: [other for other in names if other == name or name_in_job(other) == name] or [name] for name in wanted}
    return tuple(dict.fromkeys(other for others in found.values() for other in others))


def _rules(judgements: list[Judgement]) -> dict[str, RuleSetting]:
    names = dict.fromkeys(name for judgement in judgements for name in judgement.rules)
    return {name: _strictest([j.rules.get(name, RuleSetting()) for j in judgements]) for name in names}


def _strictest(settings: list[RuleSetting]) -> RuleSetting:
    given = [s for s in settings if s != RuleSetting()]
    severities = [s.severity for s in settings]
    return dataclasses.replace(
        given[0] if given else RuleSetting(),
        severity=None if None in severities else min(severities, key=SEVERITIES.index),
        ignore=tuple(name for name in settings[0].ignore if all(name in s.ignore for s in settings)),
    )


def _items(judgements: list[Judgement]) -> list[Item]:
    items: dict[str, Item] = {}
    for judgement in judgements:
        for item in judgement.checklist:
            items.setdefault(item.id, item)
    return list(items.values())


def _acceptances(judgements: list[Judgement], parts: list[Evidence]) -> list[Acceptance]:
    every = [seen.name for part in parts for seen in part.scenarios]
    found: dict[Acceptance, None] = {}
    for judgement, part in zip(judgements, parts, strict=True):
        names = [seen.name for seen in part.scenarios]
        for accepted in judgement.accept:
            everywhere = all(accepted in other.accept for other in judgements)
            scenarios = _named(accepted.scenarios, every if everywhere else names) or (() if everywhere else tuple(names))
            found[dataclasses.replace(accepted, scenarios=scenarios)] = None
    return list(found)
