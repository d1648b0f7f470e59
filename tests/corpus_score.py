"""How a report is scored against the measured truth of a corpus case."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from ddplint.check import check
from ddplint.compose import parse
from ddplint.record import record
from ddplint.report import Finding, Report, ScenarioResult
from ddplint.rules import catalogue

FOLDER = Path(__file__).parent / "corpus"
CASES = sorted(path.stem for path in FOLDER.glob("case_*.py"))
FAILED = ("error", "hang", "crashed")
SUBJECTS = ("parameters", "outputs", "terms")
FURTHER = ("attributes", "shared_parameters", "zero_gradient_parameters")


@dataclass
class Score:
    case: str
    kinds: list[str]
    found: bool
    line: bool | None
    """None where the truth names no line."""
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Scenario -> (measured, told), where they differ."""
    false_errors: list[str] = field(default_factory=list)
    report: Report | None = None

    @property
    def healthy(self) -> bool:
        return self.kinds == ["healthy"]

    @property
    def row(self) -> str:
        marks = {True: "yes", False: "NO", None: "-"}
        found = "-" if self.healthy else marks[self.found]
        return (f"{self.case[:62]:62} {self.kinds[0]:24} {found:5} {marks[self.line]:5} "
                f"{'yes' if not self.outcomes else 'NO':4} {len(self.false_errors)}")


HEADER = f"{'case':62} {'kind':24} {'found':5} {'line':5} {'ddp':4} false errors"


def container(case: str, facts: dict) -> dict:
    """The generic spec that serves every case."""
    def target(name: str, **more: str) -> dict:
        return {"_target_": f"{case}.{name}", **more}
    spec = {"model": target("make_model"), "forward": target("forward"),
            "loss": {"terms": target("loss_terms"), "total": target("total_loss")},
            "scenario": {name: {"batch": target("make_batch", scenario=name)} for name in facts["SCENARIOS"]},
            "ddp": dict(facts["DDP"]),
            "run": {"world_size": facts["WORLD_SIZE"], "steps": facts["STEPS"], "timeout": 30, "device": "cpu"}}
    for key, name in (("optimizer", "make_optimizer"), ("step", "train_step")):
        if name in facts["functions"]:
            spec[key] = target(name)
    return spec


def facts_of(case: str) -> dict:
    """Constants and function names of a case, read without importing torch."""
    facts: dict = {"functions": set()}
    for node in ast.parse((FOLDER / f"{case}.py").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            facts["functions"].add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                exec(compile(ast.Module([node], []), case, "exec"), facts)  # noqa: S102 (the corpus is our own)
            except Exception:  # noqa: BLE001, S112 (a constant that needs torch: not one of ours)
                continue
    return facts


def lint(case: str, **run: object) -> tuple[Report, dict]:
    facts = facts_of(case)
    plain = container(case, facts)
    plain["run"] |= run
    spec = parse(plain, folder=str(FOLDER), installed=list(catalogue()))
    return check(record(spec), spec.judgement), facts["TRUTH"]


def score(case: str, **run: object) -> Score:
    report, truth = lint(case, **run)
    kinds = truth["kinds"]
    telling = next((found for kind in kinds if covers(found := [f for f in report.findings if f.rule == kind], truth)), [])
    line = bool(lines_of(case, truth["where"]) & lines_told(telling)) if truth["where"] and kinds != ["healthy"] else None
    outcomes = {s.name: (truth["ddp"][s.name], s.outcome) for s in report.scenarios if not _same_outcome(truth["ddp"][s.name], s)}
    errors = [f"{f.rule}: {f.message}" for f in report.findings if f.severity == "error" and not touches(f, truth, report)]
    return Score(case, kinds, bool(telling), line, outcomes, errors, report)


def covers(findings: list[Finding], truth: dict) -> bool:
    """Whether the findings of one rule name every subject of the fault (two causes are two findings)."""
    return bool(findings) and all(set(truth[subjects]) <= {name for f in findings for name in getattr(f, subjects)}
                                  for subjects in SUBJECTS)


def _same_outcome(measured: str, told: ScenarioResult) -> bool:
    """Where only some ranks failed by themselves, error, hang and crash are one class."""
    return measured == told.outcome or (len(told.ranks) < 2 and {measured, told.outcome} <= set(FAILED))


def lines_told(findings: list[Finding]) -> set[int]:
    return {f.cause.place.line for f in findings if f.cause and f.cause.place}


def lines_of(case: str, where: str) -> set[int]:
    """The lines of ``function: expression``. The truth shortens code with ``...``, joins it with ``;`` and adds words behind it."""
    function, _, expression = where.partition(": ")
    source = (FOLDER / f"{case}.py").read_text()
    inside = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == function]
    spans = {(s.lineno, s.end_lineno) for node in inside for s in ast.walk(node) if isinstance(s, ast.stmt) and s is not node}
    text = [_plain(line) for line in source.splitlines()]
    code = {span: "".join(text[span[0] - 1:span[1]]) for span in spans}
    return {line for part in expression.split("; ") for line in _lines_with(_plain(part), code, text)}


def _lines_with(expression: str, code: dict[tuple[int, int], str], text: list[str]) -> set[int]:
    """The innermost statements that hold the expression, or else the longest beginning of it."""
    for length in range(len(expression), 0, -1):
        parts = expression[:length].split("...")
        spans = [span for span, own in code.items() if all(part in own for part in parts)]
        if spans:
            least = min(last - first for first, last in spans)
            lines = {line for first, last in spans if last - first == least for line in range(first, last + 1)}
            return {line for line in lines if parts[0] in text[line - 1]} or lines
    return set()


def _plain(code: str) -> str:
    return re.sub(r"\s", "", code).replace('"', "'")


def touches(finding: Finding, truth: dict, report: Report) -> bool:
    """Whether an error is of a listed kind and blames no parameter of the model but what the truth names; none may on a healthy case."""
    known = {name for subjects in ("parameters", *FURTHER) for name in truth.get(subjects, ())}
    return finding.rule in truth["kinds"] and (set(finding.parameters) & set(report.usage) <= known or not known)
