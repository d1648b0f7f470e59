"""Evidence from a few lines of YAML, and findings as a few lines of YAML: what tests/cases/*.yaml are made of.

A case, all keys but ``case`` with defaults::

    - case: A head whose output feeds no loss
      parameters: {backbone.weight: [3, 3], head.weight: [4]}     # name: shape; ``frozen:`` lists those that are
      ddp: {find_unused_parameters: true}
      use: [[11, 1.], [11, 11]]           # per rank, per step, a character per parameter (see evidence.py)
      outputs: {seg: {behind: [head.weight], terms: [], in_total: false}}
      terms: {cls: {reach: [backbone.weight], in_total: true, weight: 1.0, value: 0.5}}
      steps: {"1.0": {outputs: {}, terms: {}}}      # what is different on rank 1 in step 0: graph, or StepSeen's fields
      ranks: {0: {failure: {kind: raised, ...}}}    # RankSeen's fields as in the evidence file
      scenario: {outcome: {outcome: error}}         # ScenarioSeen's fields
      scenarios: {a: {use: ...}, b: {use: ...}}     # several; keys as above, what is not said is taken from outside
      options: {steps: 2}                           # the rule's own
      findings: [...]                               # or ``not_checked: reason``
"""

from typing import Any

from ddplint.evidence import Evidence, Graph, Model, Module, Output, Parameter, RankSeen, ScenarioSeen, StepSeen, Term
from ddplint.evidence_file import from_plain

GRAPH = ("outputs", "terms", "calls", "uses", "opaque")


def evidence(case: dict[str, Any]) -> Evidence:
    parts = {name: {**case, **(own or {})} for name, own in (case.get("scenarios") or {"typical": {}}).items()}
    model = _model(case)
    seen = [_scenario(name, part, model) for name, part in parts.items()]
    world = max(len(scenario.ranks) for scenario in seen)
    spec = {"model": "net.Net", "world_size": world, "steps": 1, "engine": "local", "ddp": case.get("ddp") or {}}
    return Evidence({**spec, **case.get("spec", {})}, [model], seen, tried=case.get("tried") or {})


def _model(case: dict[str, Any]) -> Model:
    frozen, plain = case.get("frozen", ()), case.get("model", {})
    aliases, lazy = case.get("aliases", {}), case.get("lazy", ())
    parameters = [Parameter(name, list(shape), "float32", name not in frozen, name.rpartition(".")[0],
                            aliases.get(name, []), name not in lazy) for name, shape in case.get("parameters", {}).items()]
    names = dict.fromkeys(["", *(part for p in parameters for part in _ancestry(p.module)), *plain.get("modules", ())])
    return Model("Net", parameters, [Module(name, "Net", batchnorm=name in plain.get("batchnorm", ())) for name in names], plain.get("buffers", {}), plain.get("ties", []))


def _ancestry(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:i + 1]) for i in range(len(parts)) if name]


def _scenario(name: str, part: dict[str, Any], model: Model) -> ScenarioSeen:
    use = part.get("use") or [[None], [None]]
    ranks = [_rank(rank, steps, part, model) for rank, steps in enumerate(use)]
    fields = from_plain(ScenarioSeen, {"name": name, **(part.get("scenario") or {})}, "scenario")
    fields.ranks = ranks
    return fields


def _rank(rank: int, uses: list[Any], part: dict[str, Any], model: Model) -> RankSeen:
    own = (part.get("ranks") or {}).get(rank) or {}
    seen = from_plain(RankSeen, {"rank": rank, **own}, "rank")
    for step, use in enumerate(uses):
        different = (part.get("steps") or {}).get(f"{rank}.{step}") or {}
        if use is None and not different and "terms" not in part and "outputs" not in part:
            continue
        _step(seen, step, "" if use is None else str(use), {**part, **different}, different, model)
    return seen


def _step(seen: RankSeen, step: int, use: str, part: dict[str, Any], different: dict[str, Any], model: Model) -> None:
    graph = _graph(part, model)
    if graph not in seen.graphs:
        seen.graphs.append(graph)
    terms = part.get("terms") or {}
    plain = {key: value for key, value in different.items() if key not in GRAPH}
    values = {name: term["value"] for name, term in terms.items() if "value" in term}
    weights = {name: term["weight"] for name, term in terms.items() if "weight" in term}
    seen.steps.append(from_plain(StepSeen, {
        "step": step, "phase": "done", "use": use, "graph": seen.graphs.index(graph), "values": values, "weights": weights,
        "total_differentiable": True, "total_shape": [], "total": 1.0, **plain}, "step"))


def _graph(part: dict[str, Any], model: Model) -> Graph:
    outputs = [Output(path, [4], "float32", o.get("differentiable", True), o.get("visible", True), _bits(o.get("behind"), model),
                      o.get("terms", []), o.get("in_total", bool(o.get("terms")))) for path, o in (part.get("outputs") or {}).items()]
    terms = [Term(name, t.get("differentiable", True), _bits(t.get("reach"), model), t.get("in_total", True))
             for name, t in (part.get("terms") or {}).items()]
    total = 0
    for term, given in zip(terms, (part.get("terms") or {}).values(), strict=True):
        total |= int(term.reach, 16) if given.get("in_total", True) else 0
    rest = {key: part[key] for key in ("calls", "uses", "opaque") if key in part}
    graph = from_plain(Graph, rest, "graph")
    graph.outputs, graph.terms, graph.total = outputs, terms, f"{total:x}"
    return graph


def _bits(names: Any, model: Model) -> str:
    every = [parameter.name for parameter in model.parameters]
    chosen = every if names == "all" else names or []
    return f"{sum(1 << every.index(name) for name in chosen):x}"
