"""The solo run finds the cause of each small faulty program in tests/causes, in exact words, at the marked line."""

import ast
import importlib
from pathlib import Path

import pytest

from ddplint.evidence import Cause
from ddplint.record import solo
from ddplint.record.request import Request
from ddplint.spec import Loss, Run, Scenario, Spec

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(path.stem for path in (ROOT / "tests" / "causes").glob("*.py"))
STEPS = [0, 1, 2]
BATCH = {"x": {"shape": [4, 8]}, "y": {"shape": [4], "integers": [0, 3]}}


def spec_of(module: str) -> Spec:
    """The spec of a program: what it does not define is left at ddplint's defaults."""
    defined = vars(importlib.import_module(module))

    def node(name: str) -> dict | None:
        return {"_target_": f"{module}.{name}"} if name in defined else None
    terms = node("loss_terms") or {"ce": {"_target_": "torch.nn.functional.cross_entropy", "args": ["output", "batch.y"]}}
    return Spec(model=node("make_model") or node("Net"), forward=node("forward"), loss=Loss(terms, node("total_loss")),
                optimizer=node("make_optimizer"), step=node("train_step"), ddp=defined.get("DDP", {}), scenarios={"typical": Scenario("typical", batch=BATCH)},
                lint=("typical",), run=Run(steps=len(STEPS), device="cpu"), folder=str(ROOT))


def causes_of(program: str, **ask: object) -> dict[str, Cause]:
    found: dict[str, Cause] = {}
    solo.run(spec_of(f"tests.causes.{program}"), Request("typical", 1, STEPS, **ask), lambda kind, body: found.update(body if kind == "causes" else {}))
    return found


def facts_of(program: str) -> tuple[dict, int]:
    """The constants of a program, and the number of the line that bears the mark."""
    text = (ROOT / "tests" / "causes" / f"{program}.py").read_text()
    constants = {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(text).body
                 if isinstance(node, ast.Assign) and node.targets[0].id in ("ASK", "KIND", "TEXT")}
    return constants, next(i for i, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))


def test_what_scales_the_total_or_is_not_in_it_is_not_added_to_it():
    kinds = {subject: cause.kind for subject, cause in causes_of("balance_of_hard_counts", terms=["balance", "scale", "hits"]).items()}
    assert kinds == {"term:balance": "ungraphed", "term:scale": "severed", "term:hits": "severed"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_cause(program):
    facts, line = facts_of(program)
    causes = causes_of(program, **facts["ASK"])
    assert causes, "no cause was found"
    assert {(cause.kind, cause.place and (cause.place.file, cause.place.line)) for cause in causes.values()} \
        == {(facts["KIND"], (f"tests/causes/{program}.py", line))}
    assert next(iter(causes.values())).text == facts["TEXT"]
