"""One judgement for a sweep whose jobs have different specs."""

from ddplint.compose.combine import combine
from ddplint.evidence import Evidence, ScenarioSeen
from ddplint.spec import Acceptance, Item, Judgement, RuleSetting


def part(*scenarios: str) -> Evidence:
    return Evidence({}, scenarios=[ScenarioSeen(name) for name in scenarios])


def test_equal_judgements_stay_as_they_are():
    judgement = Judgement(accept=(Acceptance("r", "*", "known"),))
    assert combine([judgement, judgement], [part("a"), part("b")]) == judgement


def test_what_one_job_accepts_is_accepted_in_its_scenarios_only():
    here, everywhere = Acceptance("r", "a.*", "known"), Acceptance("r", "b.*", "meant")
    combined = combine([Judgement(accept=(here, everywhere)), Judgement(accept=(everywhere,))], [part("a"), part("b")])
    assert combined.accept == (Acceptance("r", "a.*", "known", ("a",)), everywhere)


def test_the_stricter_setting_speaks():
    lax = Judgement(rules={"r": RuleSetting("off", ignore=("x", "y"))}, fail_on="error")
    strict = Judgement(rules={"r": RuleSetting("warning", ignore=("y",))}, fail_on="warning")
    combined = combine([lax, strict], [part("a"), part("b")])
    assert combined.rules == {"r": RuleSetting("warning", ignore=("y",))}
    assert combined.fail_on == "warning"


def test_a_rule_that_one_job_leaves_alone_keeps_its_own_severity():
    combined = combine([Judgement(rules={"r": RuleSetting("off")}), Judgement()], [part("a"), part("b")])
    assert combined.rules["r"].severity is None


def test_items_of_one_name_are_one_item():
    combined = combine([Judgement(checklist=(Item("a", "first"),)), Judgement(checklist=(Item("a", "second"), Item("b")))],
                       [part("a"), part("b")])
    assert combined.checklist == (Item("a", "first"), Item("b"))


def test_a_scenario_that_several_jobs_ran_is_meant_under_all_its_names():
    item = Item("a", scenarios=("typical",), expect={"terms": "cls", "share": "> 0", "scenarios": "typical"})
    accepted = Acceptance("r", "a.*", "known", ("typical", "other"))
    judgement = Judgement(checklist=(item,), accept=(accepted,))
    parts = [part("typical"), part("typical#2", "night")]
    for judgements in ([judgement, judgement], [judgement, Judgement(checklist=(item,), accept=(accepted,), fail_on="note")]):
        combined = combine(judgements, parts)
        assert combined.checklist[0].scenarios == ("typical", "typical#2")
        assert combined.checklist[0].expect["scenarios"] == ["typical", "typical#2"]
        assert combined.accept == (Acceptance("r", "a.*", "known", ("typical", "typical#2", "other")),)


def test_what_one_job_accepts_in_a_scenario_is_not_accepted_in_another_jobs():
    accepted = Acceptance("r", "a.*", "known", ("typical",))
    combined = combine([Judgement(), Judgement(accept=(accepted,))], [part("typical"), part("typical#2")])
    assert combined.accept == (Acceptance("r", "a.*", "known", ("typical#2",)),)
