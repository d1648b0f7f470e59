"""The checklist: what each item examined, and its verdict."""

from ddplint.check.apply import RUN, Sheet
from ddplint.check.globs import globs
from ddplint.check.raised import Raised
from ddplint.report import BROKEN, FAIL, NOT_CHECKED, PASS, ItemVerdict
from ddplint.spec import Item


def verdicts(items: tuple[Item, ...], sheets: dict[str, Sheet]) -> list[ItemVerdict]:
    """``sheets`` holds a sheet for each rule that was run, and one for each expectation under its item's id."""
    return [_verdict(item, [sheets[name] for name in item.rules or (item.id,) if name in sheets]) for item in items]


def _verdict(item: Item, sheets: list[Sheet]) -> ItemVerdict:
    examined = sum(sheet.count(item.match, item.scenarios) for sheet in sheets)
    kind, because = _judge(item, sheets, examined)
    lacking = "; ".join(_absent(item, sheets))
    absent = kind == NOT_CHECKED and because == lacking and not item.match and item.expect is None
    return ItemVerdict(item.id, item.title or _title(item), kind, examined, because, list(item.rules), absent)


def _title(item: Item) -> str:
    return item.id.replace("-", " ").capitalize()


def _judge(item: Item, sheets: list[Sheet], examined: int) -> tuple[str, str | None]:
    broken = [f"{sheet.active.rule.name}: {sheet.broken}" for sheet in sheets if sheet.broken]
    if broken:
        return BROKEN, "; ".join(broken)
    failing = [one for sheet in sheets for one in sheet.raised if one.counts and concerns(item, one)]
    if failing:
        return FAIL, _why_failed(failing)
    if not sheets:
        return NOT_CHECKED, f"{', '.join(item.rules)} {'is' if len(item.rules) == 1 else 'are'} switched off"
    unknown = _unknown(item, sheets)
    if unknown:
        return NOT_CHECKED, unknown
    return (PASS, None) if examined else (NOT_CHECKED, _nothing(item, sheets))


def concerns(item: Item, one: Raised) -> bool:
    """Whether a problem falls under the item's match and scenarios."""
    if item.scenarios and not set(item.scenarios) & set(one.scenarios):
        return False
    match = globs(item.match)
    return not item.match or any(match.matches(name) for name in one.subjects)


def _why_failed(failing: list[Raised]) -> str:
    speaking = [one for one in failing if one.speaks]
    if not speaking:
        return f"see {', '.join(sorted({one.explained_by.rule.name for one in failing}))}"
    names = list(dict.fromkeys(name for one in speaking for name in one.subjects))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    rules = ", ".join(sorted({one.rule.name for one in speaking}))
    return f"{rules}: {', '.join(names[:3])}{more}"


def _unknown(item: Item, sheets: list[Sheet]) -> str:
    """Why something that the item covers could not be examined."""
    return "; ".join(_reason(why, names, sheets) for why, names in _reasons(item, [sheet.unknown for sheet in sheets]).items())


def _reasons(item: Item, tables: list[dict[str, str]]) -> dict[str, list[str]]:
    """Reason -> the scenarios it holds in."""
    reasons: dict[str, list[str]] = {}
    for table in tables:
        for scenario, why in table.items():
            if (not item.scenarios or scenario in item.scenarios) and scenario not in reasons.get(why, []):
                reasons.setdefault(why, []).append(scenario)
    return reasons


def _reason(why: str, names: list[str], sheets: list[Sheet]) -> str:
    """A lack that holds wherever the item was to look is told without the scenarios' names."""
    everywhere = {name for sheet in sheets for name in (*sheet.examined, *sheet.unknown, *sheet.absent) if name != RUN}
    return why if set(names) >= everywhere else f"{why} (in {_listed(names)})"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _absent(item: Item, sheets: list[Sheet]) -> dict[str, list[str]]:
    return _reasons(item, [sheet.absent for sheet in sheets])


def _nothing(item: Item, sheets: list[Sheet]) -> str:
    if absent := _absent(item, sheets):
        return "; ".join(absent)
    if item.scenarios:
        return f"nothing to look at in {_listed(list(item.scenarios))}"
    return f"nothing matches {', '.join(item.match)}" if item.match else "there is nothing to look at"


