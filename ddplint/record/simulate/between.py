"""What happens between simulated ranks, by DDP's laws: who waits for whom, and what the others never see.

A rank that raises leaves the others in their next collective: they end where it ended. A rank that enters another
collective, or fewer of them, leaves the others waiting for ever. Runs in the parent.
"""

from ddplint.evidence import NONZERO, Difference, Failure, Mismatch, Outcome, Place, RankSeen, ScenarioSeen
from ddplint.record.assemble import UNFINISHED, add_foreseen
from ddplint.record.member import Transcript
from ddplint.record.simulate.said import Said


def settle(seen: ScenarioSeen, said: dict[int, Said]) -> None:
    """Cut every rank off where it would have ended, mark the ranks that hang, and tell gradients that nothing averaged."""
    if _refused_at_the_wrap(seen):
        return
    joined = any(event.kind == "join" for rank in seen.ranks for event in rank.events)
    failing = [rank.failure.step for rank in seen.ranks if rank.failure is not None]
    clash = None if joined else _clash(said)
    if clash is not None:
        for rank in seen.ranks:
            _hang(rank, *said[rank.rank].sequence[clash])
    elif failing:
        step = min((step for step in failing if step is not None), default=-1)
        refused = any(rank.failure is not None and UNFINISHED in rank.failure.message for rank in seen.ranks)
        for rank in seen.ranks:
            _leave(rank, step, refused, said[rank.rank].foreseen)
    elif not joined:
        least = min(len(one.sequence) for one in said.values())
        for rank in seen.ranks:
            if len(said[rank.rank].sequence) > least:
                _hang(rank, *said[rank.rank].sequence[least])
    seen.differences += _unreduced(seen, said)


def _clash(said: dict[int, Said]) -> int | None:
    """The first position at which two ranks enter different collectives."""
    for position, column in enumerate(zip(*(one.sequence for one in said.values()), strict=False)):
        if len({what for _, what, _ in column}) > 1:
            return position
    return None


def _hang(rank: RankSeen, step: int, what: str, place: Place | None) -> None:
    rank.failure = Failure("hung", "backward" if what == "reduction" else "forward", step,
                           message=f"waits in {what} for the other ranks", frames=[place] if place else [])
    _cut(rank, step)
    if rank.steps and rank.steps[-1].step == step and rank.steps[-1].phase in ("optimizer", "done"):
        rank.steps[-1].phase = rank.failure.phase


def _unreduced(seen: ScenarioSeen, said: dict[int, Said]) -> list[Difference]:
    """Gradients that no rank averaged differ between ranks that are fed different numbers."""
    steps = sorted({step for one in said.values() for step in one.unreduced})
    found = []
    for step in steps:
        used = [i for rank in seen.ranks for s in rank.steps if s.step == step for i, state in enumerate(s.use) if state == NONZERO]
        if used:
            found.append(Difference("gradients", step, list(map(str, sorted(set(used))))))
    return found


def _refused_at_the_wrap(seen: ScenarioSeen) -> bool:
    refused = next((m for m in seen.mismatches if m.what in ("names", "shapes")), None)
    if refused is None or len(seen.ranks) < 2:
        return False
    for rank in seen.ranks:
        rank.steps, rank.graphs, rank.events, rank.strays, rank.changes = [], [], [], [], []
        rank.failure = None
    seen.ranks[-1].failure = Failure("raised", "wrap", None, "RuntimeError", _refusal(refused))
    return True


def _refusal(mismatch: Mismatch) -> str:
    if mismatch.what == "names":
        return f"DDP expects same model across all ranks: {mismatch.text}"
    return f"{mismatch.names[0]}: its shape appears not to match sizes of the same param in process 0; {mismatch.text}"


def _leave(rank: RankSeen, step: int, refused: bool, foreseen: list) -> None:
    """The first rank leaves in ``step``: the others come as far as the end of that backward. Where it was DDP that
    refused missing gradients, later steps are kept as foreseen."""
    later = [seen for seen in rank.steps if seen.step > step and seen.use] if refused else []
    _cut(rank, step)
    if rank.failure is None and rank.steps and rank.steps[-1].step == step and rank.steps[-1].phase in ("optimizer", "done"):
        rank.steps[-1].phase = "backward"
        rank.events = [e for e in rank.events if e.step < step or e.kind != "optimizer-step"]
    for seen in later:
        seen.phase = "foreseen"
    rank.steps += later
    if foreseen:
        add_foreseen(rank, Transcript(rank.rank, foreseen))


def _cut(rank: RankSeen, step: int) -> None:
    """Nothing happens after this step."""
    if rank.failure is not None and rank.failure.step is not None and rank.failure.step > step:
        rank.failure = None
    rank.steps = [seen for seen in rank.steps if seen.step <= step]
    rank.events = [event for event in rank.events if event.step <= step]
    rank.changes = [change for change in rank.changes if change.step <= step]


def outcome_unknown(why: str) -> Outcome:
    return Outcome("unknown", message=why)
