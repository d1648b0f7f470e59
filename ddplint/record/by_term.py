"""Which scenarios are asked what each of their loss terms adds to the gradient (see term_gradients). Runs in the parent."""

from typing import TYPE_CHECKING

from ddplint.evidence import Evidence, ScenarioSeen
from ddplint.spec import Spec

if TYPE_CHECKING:
    from ddplint.record.gang import Gang
    from ddplint.record.join import Launch

MOST = 6        # pictures


def asks_by_term(spec: Spec) -> bool:
    """Unless the spec says so itself: where there is a page to show it on."""
    asked = bool(spec.report.files.get("html")) if spec.run.by_term is None else spec.run.by_term
    return asked and spec.step is None and spec.run.engine != "simulate"


def add_by_term(gang: "Gang | Launch", evidence: Evidence) -> None:
    """Scenarios whose terms reach the same parameters share the first one's answer."""
    told = []
    for seen in evidence.scenarios:
        reach = seen.model, _reach(seen)
        if len(reach[1]) < 2 or reach in told or len(told) == MOST:
            continue
        told.append(reach)
        transcript = gang.solo("ddplint.record.term_gradients:run", scenario=seen.name, rank=0)
        seen.by_term = next((body for kind, body in transcript.messages if kind == "by-term"), None)
        if (failure := transcript.failure) is not None:
            seen.unknown["by_term"] = f"a backward for each term {failure.kind}: {failure.message.partition(chr(10))[0][:200]}"


def _reach(seen: ScenarioSeen) -> dict[str, str]:
    """The terms in the total of the first step seen, with the parameters that each reaches."""
    graph = next((graph for rank in seen.ranks for graph in rank.graphs[:1]), None)
    return {term.name: term.reach for term in graph.terms if term.in_total and term.differentiable} if graph else {}
