"""Whatever a composed mapping holds: a Spec, or a SpecError of one line; nothing else."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from ddplint.compose import parse
from ddplint.compose.judgement import _ITEM, _REPORT
from ddplint.compose.parse import _RUN, KEYS
from ddplint.compose.scenarios import _READERS, _TENSOR
from ddplint.errors import SpecError
from ddplint.evidence_file import from_plain, to_plain
from ddplint.spec import Acceptance, Item, Judgement, RuleSetting, Spec

WORDS = sorted({*KEYS, *_RUN, *_READERS, *_TENSOR, *_ITEM, *_REPORT, "_target_", "a.b", "a", "output.x", "batch.x", "terms",
                "total", "weight", "args", "path", "because", "rule", "match", "severity", "off", "error", "unused-output"})
SCALARS = st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=4)
KEY = st.sampled_from(WORDS) | st.booleans() | st.integers(0, 2)
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=4),
                        max_leaves=12)
NODE = st.fixed_dictionaries({"_target_": st.just("a.b")})
SOURCES = st.one_of(st.fixed_dictionaries({"batch": ANYTHING}), st.fixed_dictionaries({"loader": NODE}),
                    st.fixed_dictionaries({"ranks": st.lists(st.sampled_from("abc"), max_size=3)}), ANYTHING)
SCENARIOS = st.dictionaries(st.sampled_from("abc"), SOURCES, max_size=3)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING), st.booleans() | SCENARIOS)
def test_parsing_never_breaks(container, scenarios):
    whole = {"model": {"_target_": "a.b"}, **container}
    if scenarios is not True:
        whole["scenario"] = scenarios
    try:
        found = parse(whole, folder=".", installed=["unused-output"])
    except SpecError as error:
        assert str(error) and "\n" not in error.where
    else:
        assert isinstance(found, Spec) and set(found.lint) == set(found.scenarios) != set()


TEXT = st.text(max_size=5)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
JUDGEMENTS = st.builds(
    Judgement,
    rules=st.dictionaries(TEXT, st.builds(RuleSetting, st.none() | TEXT, TEXTS, st.dictionaries(TEXT, st.integers()))),
    checklist=st.lists(st.builds(Item, TEXT, TEXT, TEXTS), max_size=3).map(tuple),
    accept=st.lists(st.builds(Acceptance, TEXT, TEXT, TEXT, TEXTS), max_size=3).map(tuple),
)


@given(JUDGEMENTS)
def test_a_judgement_survives_the_way_back_from_a_sweeps_job(judgement):
    plain = to_plain(judgement)
    assert from_plain(Judgement, plain, "job") == judgement
    assert set(plain) <= {field.name for field in dataclasses.fields(Judgement)}
