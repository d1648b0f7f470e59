"""The rules: evidence in, findings out (tests/cases/*.yaml), and every manual complete."""

import importlib.util
from pathlib import Path

import pytest
import yaml

from ddplint.check import check
from ddplint.errors import SpecError
from ddplint.report import NOT_CHECKED
from ddplint.rules import catalogue, load
from ddplint.rules.base import HEADINGS, rule
from ddplint.spec import Item, Judgement, RuleSetting
from ddplint.views import ParameterView

CASES = Path(__file__).parent / "cases"
SUBJECTS = ("parameters", "outputs", "terms", "modules", "scenarios", "ranks", "steps")


def _module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _module(CASES / "build.py")


def _cases():
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text()):
            yield pytest.param(file.stem, case, id=f"{file.stem}: {case['case']}")


def _judge(name: str, case: dict):
    """The report of one rule alone."""
    off = {other: RuleSetting(severity="off") for other in catalogue() if other != name}
    severity = "error" if catalogue()[name].severity == "off" else None
    judgement = Judgement(rules={**off, name: RuleSetting(severity=severity, options=case.get("options", {}))},
                          checklist=(Item("item", rules=(name,)),))
    return check(build.evidence(case), judgement)


@pytest.mark.parametrize("name, case", list(_cases()))
def test_case(name, case):
    report = _judge(name.replace("_", "-"), case)
    item = report.items[0]
    if "not_checked" in case:
        assert (item.verdict, item.because, report.findings) == (NOT_CHECKED, case["not_checked"], [])
        return
    assert [_plain(finding, wanted) for finding, wanted in zip(report.findings, case["findings"], strict=True)] == case["findings"]
    assert report.broken == {}
    assert item.examined > 0


def _plain(finding, wanted: dict) -> dict:
    """What the case wants to know of a finding; subjects that are not empty must be named."""
    found = {"message": finding.message}
    found |= {key: getattr(finding, key) for key in SUBJECTS if getattr(finding, key) and (key in wanted or key in SUBJECTS[:3])}
    found |= {key: getattr(finding, key) for key in wanted if key not in (*SUBJECTS, "message", "cause", "line")}
    if finding.cause and "cause" in wanted:
        found["cause"] = finding.cause.kind
    if finding.cause and finding.cause.place and "line" in wanted:
        found["line"] = finding.cause.place.line
    return found


def test_every_rule_has_a_failing_a_passing_and_a_not_checked_case():
    kinds: dict[str, set] = {name: set() for name in catalogue()}
    for parameter in _cases():
        name, case = parameter.values
        kind = "not checked" if "not_checked" in case else "failing" if case["findings"] else "passing"
        kinds[name.replace("_", "-")].add(kind)
    assert {name: sorted(seen) for name, seen in kinds.items() if len(seen) < 3} == {}


@pytest.mark.parametrize("found", list(catalogue().values()), ids=list(catalogue()))
def test_manual(found):
    assert found.summary.endswith(".") and len(found.summary) <= 110
    assert tuple(found.manual) == HEADINGS
    assert all(found.manual.values())
    assert found.view is not None


def test_a_rule_bears_its_files_name():
    files = {path.stem for path in (Path(__file__).parent.parent / "ddplint" / "rules").glob("*.py")}
    assert {name.replace("-", "_") for name in catalogue()} == files - {"__init__", "base", "words"}


def test_rules_need_no_torch():
    import subprocess
    import sys
    code = "import sys, ddplint.rules as r; r.catalogue(); print([m for m in ('torch', 'hydra', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout == "[]\n"


def test_an_unknown_option_is_told_with_the_nearest():
    with pytest.raises(SpecError, match=r"rules.zero-gradient.step: rule 'zero-gradient' has no option 'step'; did you mean 'steps'?"):
        catalogue()["zero-gradient"].configured({"step": 3})


def test_an_option_of_another_type_is_told():
    with pytest.raises(SpecError, match=r"rules.zero-gradient.steps: expected int, found str \('3'\); the default is 3"):
        catalogue()["zero-gradient"].configured({"steps": "3"})


def test_an_int_does_for_a_float_and_a_bool_does_not_for_an_int():
    assert catalogue()["zero-gradient"].configured({"relative": 1}) == {"relative": 1.0}
    with pytest.raises(SpecError, match="expected int, found bool"):
        catalogue()["zero-gradient"].configured({"steps": True})


def test_load_wants_a_rule():
    with pytest.raises(SpecError, match=r"'os.path.join' is no rule; decorate the function with @rule"):
        load("os.path.join")
    with pytest.raises(SpecError, match=r"rules.mine: rule 'nowhere.rule' cannot be imported \(ModuleNotFoundError: No module"):
        load("nowhere.rule", "rules.mine")


def test_a_rule_without_a_view_is_told():
    @rule
    def blind(thing):
        """Sees nothing."""
    with pytest.raises(SpecError, match="rule 'blind' does not say what it looks at; annotate its first parameter"):
        _ = blind.view


def test_a_decorated_function_becomes_a_rule():
    @rule(severity="warning", checks="gradients")
    def big_bias(parameter: ParameterView, *, most: int = 5):
        """A bias is big."""
    assert (big_bias.name, big_bias.severity, big_bias.view, big_bias.options) == ("big-bias", "warning", ParameterView, {"most": 5})
    with pytest.raises(ValueError, match="severity is 'fatal'; expected one of error, warning, note, off"):
        rule(severity="fatal")
