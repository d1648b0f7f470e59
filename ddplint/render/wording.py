"""What a report says, in words: every format takes its sentences from here."""

import json
from typing import Any

from ddplint.errors import CLEAN, FOUND, INTERRUPTED
from ddplint.evidence import Place
from ddplint.render.text import clean, first_sentence, listed, magnitude, plural, ranges
from ddplint.report import BROKEN, FAIL, KINDS, NOT_CHECKED, PASS, Finding, ItemVerdict, Report, ScenarioResult, Setting

VERDICT_ORDER = (FAIL, BROKEN, NOT_CHECKED, PASS)


def accepted_findings(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.accepted is not None]


def examined(report: Report) -> str:
    """``3 scenarios x 2 ranks x 3 steps``; of a sweep over them ``2 to 4 ranks``."""
    parts = [plural(len(report.scenarios), "scenario")]
    for key, noun in (("world_size", "rank"), ("steps", "step")):
        numbers = sorted(number for number in _in_jobs(report, key) if isinstance(number, int))
        parts += [f"{numbers[0]:,} to {plural(numbers[-1], noun)}" if len(numbers) > 1 else plural(numbers[0], noun)] if numbers else []
    return " x ".join(parts)


def _in_jobs(report: Report, key: str) -> list[Any]:
    """Each value that a key of the spec has in any job of the sweep, once."""
    values = [{**report.spec, **scenario.spec}.get(key) for scenario in report.scenarios] or [report.spec.get(key)]
    return [value for i, value in enumerate(values) if value not in values[:i]]


def model_name(report: Report) -> str:
    """The model as the spec names it: a dotted path, or whatever stands there."""
    model, *others = _in_jobs(report, "model")
    if isinstance(model, dict):
        model = model.get("_target_")
    return clean(model or "model") + (f" and {plural(len(others), 'other model')}" if others else "")


def verdict_line(report: Report) -> str:
    return f"{model_name(report)}: {report.tally()} in {examined(report)}"


def exit_meaning(report: Report) -> str:
    """What the exit status says, as a clause."""
    threshold = clean(report.fail_on)
    if report.exit_status == FOUND:
        return f"findings of severity {threshold} or worse"
    if report.exit_status == CLEAN:
        return "clean" if not report.open_findings else f"no finding of severity {threshold} or worse"
    if report.exit_status == INTERRUPTED:
        return "interrupted"
    reasons = broken_lines(report) or ([ddp_summary(report)] if any(s.outcome == "unknown" for s in report.scenarios) else [])
    return f"could not judge: {'; '.join(reasons)}" if reasons else "could not judge"


def broken_lines(report: Report) -> list[str]:
    return [f"rule {clean(rule)} broke ({clean(why)})" for rule, why in report.broken.items()]


# One finding: WHAT, WHY, WHERE, WHAT TO DO.

def severity_of(finding: Finding) -> str:
    return "accepted" if finding.accepted is not None else clean(finding.severity)


def headline(finding: Finding) -> str:
    """WHAT: the subject and the message, ``seg_head: 4 parameters (1,234 elements): no gradient on any of 2 ranks``."""
    message, subject = clean(finding.message), clean(subject_of(finding))
    if not subject or message.startswith(subject):
        return message
    return f"{subject}: {message}"


def subject_of(finding: Finding) -> str:
    """The group, or the only subject, or how many there are."""
    if finding.group:
        return finding.group
    names = [name for kind in KINDS for name in getattr(finding, kind)]
    return names[0] if len(names) == 1 else size_of(finding)


def size_of(finding: Finding) -> str:
    """``148 parameters (86.1 M elements), 1 output``; empty without subjects."""
    parts = [plural(len(getattr(finding, kind)), kind[:-1]) for kind in KINDS if getattr(finding, kind)]
    if finding.elements and finding.parameters:
        parts[0] += f" ({magnitude(finding.elements)} element{'' if finding.elements == 1 else 's'})"
    return ", ".join(parts)


def kinds_of(finding: Finding) -> list[str]:
    """The kinds of subject to list; modules that make up the group were named already."""
    listing = [kind for kind in KINDS if getattr(finding, kind)]
    return [kind for kind in listing if kind != "modules" or ", ".join(finding.modules) != finding.group]


def subject_lists(finding: Finding, limit: int | None) -> list[tuple[str, str]]:
    """(``4 parameters``, ``a, b, +2 more``) for each kind of subject to list."""
    names = {kind: [clean(name) for name in getattr(finding, kind)] for kind in kinds_of(finding)}
    return [(counted(kind, members), listed(members, limit)) for kind, members in names.items()]


def counted(kind: str, names: list[str]) -> str:
    """``4 parameters``; the bare noun for a single one."""
    return f"{len(names):,} {kind}" if len(names) > 1 else kind[:-1]


def why(finding: Finding) -> str:
    """WHY: a clause that completes "because ...", with its operation; empty where nothing more is known."""
    cause = finding.cause
    if cause is None:
        return ""
    text = clean(cause.text or cause.kind)
    if text in clean(finding.message):          # a failure's own words are the message
        return ""
    operation = clean(cause.operation or "")
    return text if not operation or operation in text else f"{text} [{operation}]"


def place_of(finding: Finding) -> Place | None:
    """The line of the cause; else where to look."""
    if finding.cause is not None and finding.cause.place is not None:
        return finding.cause.place
    return finding.place


def spot(place: Place | None) -> str:
    """``file:line``; empty without a place."""
    return f"{clean(place.file)}:{place.line}" if place is not None else ""


def scope(finding: Finding) -> str:
    """WHERE in the run: ``scenario typical; ranks 0, 1; steps 0-2``."""
    parts = []
    if finding.scenarios:
        noun = "scenario" if len(finding.scenarios) == 1 else "scenarios"
        parts.append(f"{noun} {listed([clean(name) for name in finding.scenarios], 8)}")
    for noun, numbers in (("rank", finding.ranks), ("step", finding.steps)):
        if numbers:
            parts.append(f"{noun}{'s' if len(set(numbers)) > 1 else ''} {ranges(numbers)}")
    return "; ".join(parts)


def explained(finding: Finding) -> str:
    """``unused-output (3)``: the rules whose problems this finding tells; empty where it stands alone."""
    return ", ".join(f"{clean(rule)} ({count:,})" for rule, count in finding.explains.items())


def one_line(finding: Finding) -> str:
    """WHAT, WHY and WHERE in one line, without the place."""
    reason, region = why(finding), scope(finding)
    return headline(finding) + (f", because {reason}" if reason else "") + (f" ({region})" if region else "")


# The rest of the report.

def ddp_line(scenario: ScenarioResult) -> str:
    """WILL DDP FAIL: ``error on rank 1 at step 1: Expected to have finished reduction ...``."""
    text = scenario.outcome
    if scenario.ranks:
        text += f" on rank{'s' if len(scenario.ranks) > 1 else ''} {ranges(scenario.ranks)}"
    if scenario.step is not None:
        text += f" at step {scenario.step}"
    return f"{text}: {clean(first_sentence(scenario.message))}" if scenario.message else text


def outcomes(report: Report, *, ok: bool) -> list[tuple[list[str], str]]:
    """(scenarios, what DDP did in each of them), for those that ended well or for the others."""
    groups: dict[str, list[str]] = {}
    for scenario in report.scenarios:
        if (scenario.outcome == "ok") == ok:
            groups.setdefault(ddp_line(scenario), []).append(clean(scenario.name))
    return [(names, line) for line, names in groups.items()]


def ddp_summary(report: Report) -> str:
    """``DDP ran all 3 scenarios`` or ``DDP fails in 1 of 3 scenarios``; predicted where nothing was run."""
    outcomes = [scenario.outcome for scenario in report.scenarios]
    total, unknown = len(outcomes), outcomes.count("unknown")
    failed = total - outcomes.count("ok") - unknown
    if not total:
        return "DDP was not run"
    engines = _in_jobs(report, "engine")
    predicted = f" ({'partly ' if len(engines) > 1 else ''}predicted by simulation)" if "simulate" in engines else ""
    if failed:
        return f"DDP fails in {failed:,} of {plural(total, 'scenario')}{predicted}"
    if unknown:
        return f"what DDP does in {unknown:,} of {plural(total, 'scenario')} is not known{predicted}"
    return (f"DDP ran all {total:,} scenarios" if total > 1 else "DDP ran the scenario") + predicted


def device_memory(report: Report) -> list[str]:
    """``typical: 1,024.0 MiB on cuda:0 (rank 0), 980.2 MiB on cuda:1 (rank 1)``"""
    return [f"{clean(scenario.name)}: " + ", ".join(
        f"{device.memory / 2**20:,.1f} MiB on {clean(device.name)} (rank {rank})" for rank, device in scenario.devices.items())
        for scenario in report.scenarios if scenario.devices]


def item_counts(report: Report) -> str:
    """``11 pass, 1 fail, 2 not checked``."""
    counts = [(sum(item.verdict == kind for item in report.items), kind) for kind in VERDICT_ORDER]
    return ", ".join(f"{count:,} {kind}" for count, kind in counts if count) or "empty"


def sorted_items(report: Report) -> list[ItemVerdict]:
    """The verdicts that need attention first; the checklist's own order within."""
    return sorted(report.items, key=lambda item: VERDICT_ORDER.index(item.verdict))


def told_items(report: Report, *, verbose: bool) -> list[tuple[str, str]]:
    """(verdict, line) as ``sorted_items``; unless verbose without those that pass, and those with nothing to check in one."""
    told = [item for item in sorted_items(report) if verbose or not (item.verdict == PASS or item.absent)]
    lines = [(item.verdict, item_line(item)) for item in told]
    if not verbose and (absent := [item for item in report.items if item.absent]):
        reasons = "; ".join(dict.fromkeys(clean(item.because) for item in absent))
        lines.append((NOT_CHECKED, f"{plural(len(absent), 'item')} with nothing to check: {reasons}"))
    return lines


def item_line(item: ItemVerdict) -> str:
    """Title, and why the item did not pass or what it looked at."""
    title = clean(item.title or item.id)
    if item.because:
        return f"{title}: {clean(item.because)}"
    return f"{title} ({item.examined:,} examined)" if item.examined else title


def settings(report: Report, *, verbose: bool = False) -> list[str]:
    """A line per DDP keyword; of a clean run those that stay as they are, and were not tried, share one without reasons."""
    brief = not verbose and report.exit_status == CLEAN and not report.findings
    current = report.spec.get("ddp") or {}
    kept = [name for name, setting in report.settings.items() if brief and setting.tried is None and current.get(name, setting) == setting.value]
    lines = [setting_line(report, name, setting) for name, setting in report.settings.items() if name not in kept]
    if kept:
        lines.append("as they are: " + ", ".join(f"{clean(n)}={keyword_value(report.settings[n].value)}" for n in kept))
    return lines


def setting_line(report: Report, name: str, setting: Setting) -> str:
    """``find_unused_parameters=false (now true): because ...``."""
    value = keyword_value(setting.value)
    current = (report.spec.get("ddp") or {}).get(name)
    now = f" (now {keyword_value(current)})" if current is not None and current != setting.value else ""
    tried = f"; tried: {clean(setting.tried)}" if setting.tried else ""
    return f"{clean(name)}={value}{now}: {clean(setting.because)}{tried}"


def keyword_value(value: Any) -> str:
    """As it is typed on the command line: true, false, null, 25."""
    return clean(json.dumps(value, default=str))


def remarks(report: Report) -> list[str]:
    """What must not be overlooked: broken rules, acceptances that matched nothing, what a baseline no longer needs."""
    resolved = [f"no longer seen: {clean(text)}" for text in report.resolved]
    unmatched = [f"accept matched nothing: {clean(text)}" for text in report.unmatched_acceptances]
    return [*broken_lines(report), *unmatched, *resolved, *map(clean, report.notes)]
