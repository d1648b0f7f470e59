"""No evidence breaks a rule, and what the judge says of it holds together."""

import importlib.util
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddplint.check import check
from ddplint.errors import CANNOT_JUDGE, CLEAN, FOUND
from ddplint.evidence import EVENT_KINDS
from ddplint.report import FAIL, NOT_CHECKED
from ddplint.rules import catalogue
from ddplint.spec import Item, Judgement
from ddplint.views.failures import MESSAGES

_spec = importlib.util.spec_from_file_location("build", Path(__file__).parent / "cases" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)

NAMES = ["stem.weight", "stem.bias", "layers.0.fc.weight", "layers.1.fc.weight", "scale"]
SHAPES = [[2, 2], [2], [3, 3], [3, 3], []]
MODULES = ["", "stem", "layers", "layers.0", "layers.1"]

number = st.integers(0, 2)
place = st.builds(lambda line: {"file": "net.py", "line": line}, st.integers(1, 3))
places = st.one_of(st.none(), place)
members = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)
words = st.sampled_from(["", "oh no", *(parts[0] for parts in MESSAGES.values())])


def mapping(**strategies):
    return st.fixed_dictionaries(strategies)


failure = mapping(kind=st.sampled_from(["raised", "exited", "killed", "hung"]), message=words, step=st.one_of(st.none(), number),
                  phase=st.sampled_from(["import", "build", "wrap", "batch", "forward", "terms", "backward", "optimizer"]),
                  type=st.sampled_from(["RuntimeError", "ValueError", "SIGKILL", "LoaderEnded", ""]),
                  frames=st.lists(place, max_size=2), module=st.sampled_from(MODULES), collateral=st.booleans())
event = mapping(step=number, kind=st.sampled_from(EVENT_KINDS), place=places,
                detail=st.sampled_from(["", "no-sync", "reentrant", "allreduce", "stem"]))
cause = mapping(kind=st.sampled_from(["severed", "checkpoint", "dead-end", "term-not-in-total", "unknown"]), text=st.just("so"),
                place=places, terms=st.lists(st.sampled_from(["ce", "kl"]), max_size=1))
rank = mapping(
    events=st.lists(event, max_size=6),
    failure=st.one_of(st.none(), failure),
    size=st.one_of(st.just([]), st.lists(st.sampled_from([0.0, 1e-9, 0.1]), min_size=5, max_size=5)),
    strays=st.lists(mapping(name=st.just("mlps.0"), kind=st.sampled_from(["unregistered", "outside"]), in_optimizer=st.booleans(),
                            gradient=st.booleans(), place=places), max_size=1),
    changes=st.lists(mapping(parameter=st.sampled_from(NAMES), what=st.sampled_from(["requires_grad", "hooks", "dtype"]),
                             step=number, place=places), max_size=2),
    ties=st.lists(mapping(names=st.just(NAMES[:2]), how=st.just("copied"), place=places), max_size=1),
    optimizer=st.one_of(st.just({}), mapping(missing=members, twice=members)),
    notes=st.lists(st.just("None of the inputs have requires_grad=True"), max_size=1),
    dead=st.one_of(st.none(), st.just({"stem": "zero"})),
    batchnorm=st.one_of(st.none(), st.just({"stem": 2})),
    layouts=st.one_of(st.none(), members))
term = mapping(reach=members, in_total=st.booleans(), differentiable=st.booleans(), weight=st.sampled_from([0.0, 1.0]),
               value=st.sampled_from([1.0, float("nan")]))
output = mapping(behind=members, terms=st.lists(st.sampled_from(["ce", "kl"]), unique=True), differentiable=st.booleans(),
                 visible=st.booleans())
step = mapping(fired=st.dictionaries(st.sampled_from(NAMES), st.just(2), max_size=1), counts=st.just({"ce": 3.0}),
               synced=st.lists(st.text("1.", min_size=5, max_size=5), max_size=1), total=st.sampled_from([None, 1.0, float("inf")]),
               total_differentiable=st.sampled_from([None, True, False]), total_shape=st.sampled_from([None, [], [3]]))
scenario = mapping(
    use=st.lists(st.lists(st.one_of(st.none(), st.text(".01!-?", min_size=5, max_size=5)), min_size=1, max_size=3),
                 min_size=1, max_size=2),
    terms=st.dictionaries(st.sampled_from(["ce", "kl"]), term), outputs=st.dictionaries(st.sampled_from(["a", "b"]), output),
    steps=st.dictionaries(st.sampled_from(["0.0", "1.0", "0.1"]), step), ranks=st.dictionaries(st.sampled_from([0, 1]), rank),
    calls=st.dictionaries(st.sampled_from(MODULES), st.just(1)), opaque=st.lists(st.just("a compiled region"), max_size=1),
    uses=st.lists(mapping(parameter=st.just("stem.weight"), module=st.sampled_from(["stem", "layers.0"]), call=st.just(0),
                          in_total=st.booleans()), max_size=2),
    scenario=mapping(
        outcome=mapping(outcome=st.sampled_from(["ok", "error", "hang", "crashed", "unknown"])),
        causes=st.dictionaries(st.sampled_from([f"parameter:{name}" for name in NAMES]), cause, max_size=2),
        differences=st.lists(mapping(what=st.sampled_from(["gradients", "parameters", "buffers"]), step=number, names=members), max_size=2),
        mismatches=st.lists(mapping(what=st.sampled_from(["shapes", "values", "buffers"]), names=members, text=st.just("unlike"),
                                    place=places), max_size=1),
        branches=st.one_of(st.none(), st.lists(mapping(place=place, arm=st.just("if"), taken=st.booleans(),
                                                       module=st.sampled_from(MODULES)), max_size=2)),
        custom_step=st.booleans()))
case = mapping(
    parameters=st.just(dict(zip(NAMES, SHAPES, strict=True))), frozen=members, lazy=st.lists(st.just("scale"), max_size=1),
    aliases=st.sampled_from([{}, {"stem.weight": ["layers.0.tied"]}]),
    ddp=mapping(find_unused_parameters=st.booleans(), static_graph=st.booleans()),
    model=st.just({"buffers": {"queue": [2]}, "batchnorm": ["stem"]}),
    scenarios=st.dictionaries(st.sampled_from(["x", "y"]), scenario, min_size=1))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(case)
def test_any_evidence(case):
    evidence = build.evidence(case)
    items = tuple(Item(name, rules=(name,)) for name in catalogue())
    report = check(evidence, Judgement(checklist=items))
    assert report.broken == {}
    assert report == check(evidence, Judgement(checklist=items))
    told = {finding.rule for finding in report.findings if finding.severity != "note"}
    told |= {rule for finding in report.findings for rule in finding.explains}
    for item, rule in ((item, item.rules[0]) for item in report.items):
        assert (item.verdict == FAIL) <= (rule in told)
        assert (item.verdict == NOT_CHECKED) == (item.because is not None and item.verdict != FAIL)
    for finding in report.findings:
        assert finding.scenarios and finding.message.startswith(finding.group)
        assert "{" not in finding.message + finding.remedy
    unknown = any(scenario.outcome == "unknown" for scenario in report.scenarios)
    assert report.exit_status == (FOUND if any(finding.severity == "error" for finding in report.findings)
                                  else CANNOT_JUDGE if unknown else CLEAN)
