"""The parent's side of a simulation: one solo process a scenario, its ranks put together. Imports no torch."""

import dataclasses

from ddplint.evidence import Model, RankSeen, ScenarioSeen
from ddplint.record.assemble import outcome, scenario_seen
from ddplint.record.gang import Gang
from ddplint.record.member import Transcript
from ddplint.record.simulate.between import outcome_unknown, settle
from ddplint.record.simulate.said import Said
from ddplint.spec import Spec

VALUES = "a simulation knows shapes, not numbers"
VALUE_ASPECTS = ("values", "sizes", "activations", "derivatives")
JOB, CAUSES = "ddplint.record.simulate.job:run", "ddplint.record.simulate.causes:run"


def simulated(spec: Spec, name: str, gang: Gang) -> tuple[list[Transcript], ScenarioSeen, Model | None]:
    """The scenario as simulated; the transcripts hold spec-errors and internal errors like those of real ranks."""
    transcript = gang.solo(JOB, timeout=max(spec.run.timeout, 600.0), scenario=name)
    told = {said.rank: said for kind, said in transcript.messages if kind == "rank"}
    same = dict(body for kind, body in transcript.messages if kind == "same")
    transcripts = [_transcript(said) for said in told.values()]
    outer = Transcript(0, [m for m in transcript.messages if m[0] in ("spec-error", "internal-error")], transcript.failure)
    seen, model = scenario_seen(spec, name, transcripts or [Transcript(0, failure=transcript.failure)])
    if told:
        _conclude(seen, model, told, same, spec.run.world_size)
    else:
        seen.outcome = outcome_unknown(f"the simulation {_how(transcript)}")
        seen.unknown |= dict.fromkeys(("gradients", "outputs", "terms", "loss", "steps"), f"the simulation {_how(transcript)}")
    return [outer, *transcripts], seen, model


def _how(transcript: Transcript) -> str:
    failure = transcript.failure
    return f"{failure.kind} ({failure.type or failure.status}: {failure.message[:200]})" if failure else "said nothing"


def _transcript(said: Said) -> Transcript:
    failure = next((body for kind, body in said.messages if kind == "failure"), None)
    return Transcript(said.rank, said.messages, failure)


def _conclude(seen: ScenarioSeen, model: Model | None, told: dict[int, Said], same: dict[int, int], world_size: int) -> None:
    settle(seen, told)
    for difference in seen.differences:
        difference.names = [model.parameters[int(position)].name for position in difference.names]
    seen.partly["differences"] = VALUES
    seen.outcome = outcome(seen.ranks)
    seen.unknown |= dict.fromkeys(VALUE_ASPECTS, VALUES)
    _add_unknown(seen, list(told.values()))
    if world_size > 1:
        seen.unknown.pop("ranks", None) if "one rank" in seen.unknown.get("ranks", "") else None
    by_rank = {rank.rank: rank for rank in seen.ranks}
    seen.ranks = [by_rank.get(rank) or _twin(by_rank[same[rank]], rank) for rank in range(world_size)
                  if rank in by_rank or rank in same]


def _twin(rank: RankSeen, number: int) -> RankSeen:
    """What another rank saw is what this one sees: the same lists, held once."""
    return dataclasses.replace(rank, rank=number, same_as=rank.rank)


def _add_unknown(seen: ScenarioSeen, told: list[Said]) -> None:
    for said in told:
        for aspect, why in said.unknown.items():
            seen.unknown.setdefault(aspect, why)
        for aspect, why in said.partly.items():
            seen.partly.setdefault(aspect, why)
    open_ends = [said for said in told if said.unknown or said.split]
    if open_ends and (open_ends[0].unknown or open_ends[0].partly):
        seen.outcome = outcome_unknown(next(iter({**open_ends[0].unknown, **open_ends[0].partly}.values())))
