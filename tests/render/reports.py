"""Reports to print: healthy, failing, large and hostile."""

from itertools import pairwise

from ddplint.evidence import Cause, Place
from ddplint.report import (
    Box,
    Depth,
    Finding,
    GraphPicture,
    ItemVerdict,
    LedgerRow,
    Link,
    Report,
    ScenarioResult,
    Setting,
    TermFlow,
)

UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one."


def healthy() -> Report:
    names = ["backbone.0.weight", "backbone.0.bias", "head.weight", "head.bias"]
    return Report(
        exit_status=0,
        spec={"model": "my_pkg.models.MultiTaskNet", "world_size": 2, "steps": 3, "engine": "local",
              "ddp": {"find_unused_parameters": False, "static_graph": False}},
        items=[
            ItemVerdict("outputs-used", "Every forward output is used", "pass", 6, rules=["unused-output"]),
            ItemVerdict("terms-arrive", "Every task's loss arrives", "pass", 4, rules=["dropped-loss-term"]),
            ItemVerdict("branches-taken", "Every branch is taken", "not checked", 0,
                        "no branch was traced (run.causes=false)", ["untaken-branch"]),
        ],
        scenarios=[ScenarioResult("typical", "ok"), ScenarioResult("bright", "ok")],
        settings={"find_unused_parameters": Setting(False, "every parameter gets a gradient in every scenario")},
        usage={name: {"typical": [1.0, 1.0], "bright": [1.0, 1.0]} for name in names},
        version="0.1.0",
    )


def failing() -> Report:
    head = ["seg_head.conv.weight", "seg_head.conv.bias", "seg_head.out.weight", "seg_head.out.bias"]
    experts = [f"experts.{i}.{leaf}" for i in range(2) for leaf in ("weight", "bias")]
    report = healthy()
    report.exit_status = 1
    report.items[0] = ItemVerdict("outputs-used", "Every forward output is used", "fail", 6,
                                  "seg feeds no loss term", ["unused-output"])
    report.items.append(ItemVerdict("own", "The house rule", "broken", 0, "KeyError: 'x'", ["house-rule"]))
    report.broken = {"house-rule": "KeyError: 'x'"}
    report.findings = [
        Finding("unused-parameter", "error", "no gradient on any of 2 ranks",
                "add a term that reads the output seg, or freeze seg_head", "seg_head", parameters=head, outputs=["seg"],
                scenarios=["typical", "bright"], ranks=[0, 1], steps=[0, 1, 2], elements=1_250_000,
                cause=Cause("output-not-in-loss", "the output seg feeds no loss term",
                            Place("my_pkg/models.py", 41, "forward", 'return {"cls": cls, "seg": seg}'),
                            also=["no term of losses() reads it (my_pkg/losses.py:12)"]),
                explains={"unused-output": 1}, fingerprint="a1"),
        Finding("rank-divergent-usage", "error", "a gradient on rank 0, none on rank 1", "feed every rank the same route",
                "experts.1", parameters=experts[2:], scenarios=["bright"], ranks=[1], steps=[1], elements=20,
                cause=Cause("module-not-called", "experts.1 is called only where x.mean() > 0",
                            Place("my_pkg/models.py", 30, "route", "if x.mean() > 0:")), fingerprint="b2"),
        Finding("zero-gradient", "warning", "the gradient is zero at each of 3 steps", parameters=["scale"],
                scenarios=["typical"], ranks=[0, 1], steps=[0, 1, 2], elements=1, fingerprint="c3"),
        Finding("unused-parameter", "error", "no gradient on any of 2 ranks", group="old_head",
                parameters=["old_head.weight"], scenarios=["typical"], elements=8,
                accepted="kept so that old checkpoints load", fingerprint="d4"),
    ]
    report.scenarios = [ScenarioResult("typical", "error", [1], 1, UNFINISHED), ScenarioResult("bright", "ok")]
    report.settings = {
        "find_unused_parameters": Setting(True, "seg_head gets no gradient in any scenario", "ran without error"),
        "static_graph": Setting(False, "the set of used parameters varies"),
    }
    report.usage.update({name: {"typical": [0.0, 0.0], "bright": [0.0, 0.0]} for name in [*head, "old_head.weight"]})
    report.usage.update({name: {"typical": [1.0, 1.0], "bright": [2 / 3, 0.0 if "1" in name else 2 / 3]}
                         for name in experts})
    report.usage["scale"] = {"typical": [1.0, 1.0], "bright": [None, None]}
    report.unmatched_acceptances = ["zero-gradient bert.*"]
    report.place = Place("my_pkg/models.py", 12, "MultiTaskNet", "class MultiTaskNet(nn.Module):")
    report.graph, report.ledger, report.depths = [_graph()], _ledger(), _depths()
    report.term_flows = [TermFlow("typical", [Depth("backbone.0", {"cls": 0.5, "seg": 0.0}), Depth("cls_head", {"cls": 0.25})]),
                         TermFlow("bright", unknown="a backward for each term raised: no")]
    return report


def _graph() -> GraphPicture:
    boxes = [Box("backbone", "module", "used", 12, 8_700_000, "Backbone"),
             Box("cls_head", "module", "used", 2, 5130, "Linear"),
             Box("seg_head", "module", "unused", 4, 1_250_000, "SegHead"),
             Box("experts.1", "module", "differs", 2, 20, "Linear"),
             Box("text_tower", "module", "unused", 148, 86_100_000, "TextTower"),
             Box("cls", "output"), Box("seg", "output", "unused"), Box("cls_loss", "term"), Box("total", "total")]
    links = [Link(("module", "backbone"), ("module", "cls_head")), Link(("module", "backbone"), ("module", "experts.1")),
             Link(("module", "experts.1"), ("module", "cls_head")),
             Link(("module", "backbone"), ("module", "seg_head"), cut=True),
             Link(("module", "seg_head"), ("output", "seg"), cut=True), Link(("module", "cls_head"), ("output", "cls")),
             Link(("output", "cls"), ("term", "cls_loss")), Link(("term", "cls_loss"), ("total", "total")),
             Link(("module", "text_tower"), ("total", "total"), cut=True, label="detach() my_pkg/models.py:41")]
    return GraphPicture("typical", boxes, links)


def _ledger() -> list[LedgerRow]:
    return [LedgerRow(scenario, "cls", True, True, 2.303, 1.0, {"backbone": 1.0, "cls_head": 1.0, "experts": 0.5})
            for scenario in ("typical", "bright")] + [
        LedgerRow("typical", "seg", False, True, 0.69, None, {"backbone": 1.0, "seg_head": 1.0}),
        LedgerRow("bright", "seg", False, True, float("nan"), None, {"backbone": 1.0, "seg_head": 1.0})]


def _depths() -> list[Depth]:
    names = [*(f"backbone.{i}" for i in range(12)), "cls_head", "seg_head"]
    return [Depth(name, {"typical": 0.0 if name == "seg_head" else 10.0 ** (i / 3 - 6), "bright": 10.0 ** (i / 4 - 4)})
            for i, name in enumerate(names)]


def large(modules: int = 2000, scenarios: int = 50) -> Report:
    """Many modules and scenarios, half of them unlike their neighbours."""
    names = [f"s{i:02d}" for i in range(scenarios)]
    report = failing()
    report.scenarios = [ScenarioResult(name, "ok") for name in names]
    report.usage = {f"stage{i % 10}.block{i // 10}.weight": {name: [1.0, float((i + j) % 7 > 0)]
                                                             for j, name in enumerate(names)} for i in range(modules)}
    report.findings[0].parameters = list(report.usage)[:1000]
    report.depths = [Depth(name, {"s00": 10.0 ** (i % 9 - 8)}) for i, name in enumerate(report.usage)]
    report.ledger = [LedgerRow(name, term, True, True, 1.0, 1.0, {f"stage{i}": 1.0 for i in range(10)})
                     for name in names for term in ("cls", "seg")]
    report.graph = [_chain(60)]
    return report


def _chain(count: int) -> GraphPicture:
    """A deep network with skip connections and a parallel branch."""
    boxes = [Box(f"stage{i // 6}.block{i}", "module", "unused" if i % 11 == 5 else "used", 4, 1000 * i, "Block")
             for i in range(count)] + [Box("out", "output"), Box("loss", "term"), Box("total", "total")]
    keys = [(box.kind, box.name) for box in boxes]
    links = [Link(a, b) for a, b in pairwise(keys)]
    links += [Link(keys[i], keys[i + 4]) for i in range(0, count - 4, 5)]
    links += [Link(keys[i], keys[i + 2]) for i in range(3, count - 4, 7)]
    return GraphPicture("s00", boxes, links)


HOSTILE = ["<script>alert(1)</script>", "a\x1b[31mred\x1b[0m", "\x9b31mC1", "x" * 10_000, "🙂.weight", "\u202eevil\u202c",
           "שלום.weight", "pipe|`tick`", "line\nbreak\r\tx", "[bold]not markup[/bold]", "%0A::error::x", "]]>&amp;\x00",
           "\ud800half", "--> A[x]"]


def hostile() -> Report:
    """Names, texts and paths that try to act instead of being seen."""
    report = failing()
    report.spec["model"] = HOSTILE[0]
    report.findings = [
        Finding("unused-parameter", "error", f"message {name}", f"remedy {name}", name, parameters=[name], outputs=[name],
                terms=[name], modules=[name], scenarios=[name], ranks=[0], steps=[0], fingerprint=str(i),
                cause=Cause("severed", f"cause {name}", Place(name, 3, name, name), operation=name, also=[name]))
        for i, name in enumerate(HOSTILE)
    ]
    report.items = [ItemVerdict(name, name, "fail", 1, name) for name in HOSTILE]
    report.scenarios = [ScenarioResult(name, "error", [0], 1, name) for name in HOSTILE]
    report.settings = {"find_unused_parameters": Setting(True, HOSTILE[0], HOSTILE[1])}
    report.usage = {name: {other: [0.0, 1.0] for other in HOSTILE} for name in HOSTILE}
    report.graph = [GraphPicture(HOSTILE[0], [Box(name, "module", "unused", 1, 1, name) for name in HOSTILE],
                                 [Link(("module", HOSTILE[0]), ("module", name), True, name) for name in HOSTILE])]
    report.ledger = [LedgerRow(name, name, True, True, float("inf"), float("nan"), {name: 0.5}) for name in HOSTILE]
    report.depths = [Depth(name, {name: float("nan"), HOSTILE[0]: float("inf")}) for name in HOSTILE]
    report.term_flows = [TermFlow(name, report.depths, name) for name in HOSTILE]
    report.notes, report.unmatched_acceptances, report.broken = list(HOSTILE), list(HOSTILE), {HOSTILE[0]: HOSTILE[1]}
    return report
