"""What the pictures show, from evidence."""

from ddplint.evidence import (
    Cause,
    Evidence,
    Graph,
    Model,
    Module,
    Output,
    Parameter,
    Place,
    RankSeen,
    ScenarioSeen,
    StepSeen,
    Term,
)
from ddplint.pictures import add_pictures
from ddplint.pictures.parts import levels
from ddplint.report import Finding, Report


def evidence():
    """backbone feeds cls (in the loss) and seg (ignored); text is cut off."""
    owners = ["backbone", "cls", "seg", "text"]
    model = Model("Net", [Parameter(f"{owner}.weight", [2, 2], "float32", True, owner) for owner in owners],
                  [Module("", "Net", Place("net.py", 3)), Module("backbone", "Conv2d")])
    flows = [["backbone", "cls"], ["backbone", "seg"], ["cls", "output:cls"], ["cls", "term:ce"], ["cls", "total:"],
             ["seg", "output:seg"]]
    graph = Graph([Output("cls", [1], "float32", True, True, "3", ["ce"], True),
                   Output("seg", [1], "float32", True, True, "5")],
                  [Term("ce", True, "3", True), Term("extra", True, "4", False)], "3", flows=flows)
    step = StepSeen(0, "done", 0, "11..", values={"ce": 0.5}, weights={"ce": 2.0})
    ranks = [RankSeen(0, steps=[step], graphs=[graph], size=[0.5, 0.25, 0.0, 0.0]), RankSeen(1, steps=[step], graphs=[graph], size=[0.75])]
    return Evidence({"model": "Net"}, [model], [ScenarioSeen("a", 0, ranks), ScenarioSeen("b", 0, ranks)])


def pictured(findings=()):
    usage = {name: {s: [share, share] for s in "ab"}
             for name, share in zip(["backbone.weight", "cls.weight", "seg.weight", "text.weight"], [1, 1, 0, 0], strict=True)}
    report = Report(1, findings=list(findings), usage=usage)
    add_pictures(report, evidence())
    return report


def test_scenarios_that_flow_alike_share_a_picture():
    assert [picture.scenario for picture in pictured().graph] == ["a, b"]


def test_boxes_and_states():
    boxes = {(box.kind, box.name): box.state for box in pictured().graph[0].boxes}
    assert boxes == {("module", "backbone"): "used", ("module", "cls"): "used", ("module", "seg"): "unused",
                     ("module", "text"): "unused", ("output", "cls"): "used", ("output", "seg"): "unused",
                     ("term", "ce"): "used", ("term", "extra"): "unused", ("total", "total"): "used"}


def test_links_lead_through_outputs_and_terms_and_cut_ones_are_marked():
    links = {(link.source[1], link.target[1]): link.cut for link in pictured().graph[0].links}
    assert links == {("backbone", "cls"): False, ("backbone", "seg"): True, ("cls", "cls"): False, ("cls", "ce"): False,
                     ("ce", "total"): False, ("seg", "seg"): True}


def test_a_severed_module_is_drawn_to_what_it_should_have_reached():
    cause = Cause("severed", "detach() cuts it", Place("net.py", 9), "detach()")
    finding = Finding("unused-parameter", "error", "x", parameters=["text.weight"], scenarios=["a"], cause=cause)
    report = pictured([finding])
    cut = [link for link in report.graph[0].links if link.source == ("module", "text")]
    assert [(link.target, link.cut, link.label) for link in cut] == [(("total", "total"), True, "detach() net.py:9")]
    assert [picture.scenario for picture in report.graph] == ["a", "b"]


def test_the_ledger():
    rows = [row for row in pictured().ledger if row.scenario == "a"]
    assert [(row.term, row.in_total, row.value, row.weight) for row in rows] == [
        ("ce", True, 0.5, 2.0), ("extra", False, None, None)]
    assert rows[0].reach == {"backbone": 1.0, "cls": 1.0} and rows[1].reach == {"seg": 1.0}


def test_depths_are_the_largest_over_ranks():
    assert {depth.module: depth.largest["a"] for depth in pictured().depths} == {
        "backbone": 0.75, "cls": 0.25, "seg": 0.0, "text": 0.0}


def test_what_each_term_adds_without_what_it_does_not_lead_to():
    seen = evidence()
    seen.scenarios[0].by_term = {"ce": [0.5, 0.25, None, None], "aux": [float("nan"), None, 0.0, None]}
    seen.scenarios[1].unknown["by_term"] = "a backward for each term raised: no"
    report = Report(1)
    add_pictures(report, seen)
    told = [(flow.scenario, {depth.module: repr(depth.largest) for depth in flow.depths}, flow.unknown) for flow in report.term_flows]
    assert told == [("a", {"backbone": "{'ce': 0.5, 'aux': nan}", "cls": "{'ce': 0.25}", "seg": "{'aux': 0.0}"}, ""),
                    ("b", {}, "a backward for each term raised: no")]


def test_the_models_class_is_where_to_look():
    assert pictured().place == Place("net.py", 3)


def test_names_are_cut_at_the_deepest_depth_that_fits():
    names = [f"encoder.layer.{i}.{part}" for i in range(12) for part in ("attention", "mlp")]
    assert len(set(levels(names, 24).values())) == 24
    assert set(levels(names, 20).values()) == {f"encoder.layer.{i}" for i in range(12)}
    assert set(levels(names, 3).values()) == {"encoder.layer"}
    assert levels([f"{i}.conv" for i in range(7)], 3) == {
        f"{i}.conv": ["0 ... 2", "3 ... 5", "6"][i // 3] for i in range(7)}


def test_evidence_of_a_model_that_was_never_built():
    report = Report(1)
    add_pictures(report, Evidence({}, [], [ScenarioSeen("a")]))
    assert (report.graph, report.ledger, report.depths, report.place) == ([], [], [], None)
