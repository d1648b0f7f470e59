"""The sections ``rules``, ``checklist``, ``accept`` and ``report``: how evidence is judged and shown."""

from collections.abc import Collection
from typing import Any

from ddplint.compose import fields
from ddplint.errors import SpecError
from ddplint.spec import Acceptance, Item, Judgement, ReportOptions, RuleSetting

FORMATS = ("json", "sarif", "junit", "github", "gitlab", "markdown", "html")


def judgement(container: dict[str, Any], installed: Collection[str]) -> Judgement:
    """From the composed mapping and the names of the installed rules."""
    rules = rule_settings(container.get("rules") or {}, installed)
    known = {*installed, *rules}
    return Judgement(
        rules=rules,
        checklist=tuple(_items(container.get("checklist") or {}, known)),
        accept=tuple(_acceptances(container.get("accept") or [], known)),
        fail_on=report_options(container.get("report") or {}).fail_on,
    )


def rule_settings(value: Any, installed: Collection[str]) -> dict[str, RuleSetting]:
    settings = {name: _setting(item, f"rules.{name}") for name, item in fields.mapping(value, "rules").items()}
    for name, setting in settings.items():
        if setting.target is None:
            _known_rule(name, "rules", installed)
    return settings


def _setting(value: Any, where: str) -> RuleSetting:
    if value is None:
        return RuleSetting()
    if not isinstance(value, dict):
        return RuleSetting(severity=fields.severity(value, where))
    given = fields.mapping(value, where)
    target = fields.node(given, where)["_target_"] if "_target_" in given else None
    severity, ignore = given.pop("severity", None), given.pop("ignore", None)
    given.pop("_target_", None)
    return RuleSetting(
        severity=None if severity is None else fields.severity(severity, f"{where}.severity"),
        ignore=() if ignore is None else fields.texts(ignore, f"{where}.ignore"),
        options=given,
        target=target,
    )


def _known_rule(name: str, where: str, known: Collection[str]) -> str:
    if name not in known:
        raise SpecError(f"no rule is called '{name}'", where=where, hint=fields.nearest(name, known))
    return name


def _items(value: Any, known: Collection[str]) -> list[Item]:
    found = fields.mapping(value, "checklist")
    return [_item(name, item, known) for name, item in found.items() if item not in (None, False, "off")]


def _item(id: str, value: Any, known: Collection[str]) -> Item:
    where = f"checklist.{id}"
    given = fields.read(value, where, _ITEM)
    if "rule" in given and "rules" in given:
        raise SpecError("has rule and rules", where=where, hint="one of them; rules takes a list")
    rules = given.pop("rule", ()) or given.pop("rules", ())
    if bool(rules) == ("expect" in given):
        raise SpecError("has rules and expect" if rules else "names no rule", where=where,
                        hint="either rule: NAME or expect: {parameters: ..., reached_by: ...}")
    for name in rules:
        _known_rule(name, where, known)
    return Item(id, rules=rules, **given)


def _acceptances(value: Any, known: Collection[str]) -> list[Acceptance]:
    if not isinstance(value, list):
        raise fields.wrong(value, "accept", "a list", _ACCEPT_HINT)
    return [_acceptance(item, f"accept[{i}]", known) for i, item in enumerate(value)]


def _acceptance(value: Any, where: str, known: Collection[str]) -> Acceptance:
    readers = {"rule": fields.text, "match": fields.text, "because": fields.text, "scenarios": fields.texts}
    given = fields.read(value, where, readers)
    for key in ("rule", "match", "because"):
        if not given.get(key, "").strip():
            raise SpecError(f"'{key}' is missing", where=where, hint=_ACCEPT_HINT)
    _known_rule(given["rule"], f"{where}.rule", known)
    return Acceptance(**given)


def report_options(value: Any) -> ReportOptions:
    given = fields.read(value, "report", _REPORT)
    files = {name: given.pop(name) for name in FORMATS if name in given}
    if given.get("evidence") in files.values():
        raise SpecError(f"'{given['evidence']}' is a report's file, too", where="report.evidence")
    return ReportOptions(files=files, **given)


_ACCEPT_HINT = '{rule: unused-parameter, match: "bert.pooler.*", because: old checkpoints need it}'
_ITEM = {
    "title": fields.text,
    "rule": fields.texts,
    "rules": fields.texts,
    "expect": fields.mapping,       # read by check/expect.py
    "match": fields.texts,
    "scenarios": fields.texts,
    "severity": fields.severity,
}
_REPORT = {
    "fail_on": fields.choice("error", "warning", "note"),
    "verbose": fields.flag,
    "terminal": fields.flag,
    "evidence": fields.text,
    "baseline": fields.text,
    "update_baseline": fields.flag,
    **dict.fromkeys(FORMATS, fields.text),
}
