"""Which rank is at fault? Ranks that only wait for another, or only lost their peer, are marked as collateral."""

from ddplint.evidence import Failure
from ddplint.record import stacks
from ddplint.record.member import Member, Transcript

_LOST_PEER = (
    "connection closed by peer", "connection reset by peer", "connection refused", "connection was likely closed",
    "broken pipe", "socket closed", "socket timeout", "timed out waiting", "read error", "write error",
    "remote process exited", "remote peer", "the client socket has failed", "failed to recv", "failed to send",
    "nccl communicator was aborted",
)
"""What gloo, NCCL and the store say when another rank went away."""


def give_up(members: list[Member], timeout: float) -> None:
    """End the wait for all pending ranks: each gets a Failure with its stack, told apart by what it waits for."""
    pending = [member for member in members if member.pending]
    failed = [member.rank for member in members if member.transcript.failure is not None]
    for member in pending:
        member.ask_stack()
    frames = {member.rank: member.read_stack() for member in pending}
    waits = {rank: stacks.collective(stack) for rank, stack in frames.items()}
    starting = not all(member.settled for member in pending)
    someone_left = len(pending) < len(members) or not all(waits.values())
    for member in pending:
        where, (phase, step) = waits[member.rank], member.phase
        message = f"waits in {where} for the other ranks" if where else f"no progress for {timeout:g} s"
        message = f"the ranks were not up within {timeout:g} s" if starting else message
        if failed:
            message = f"ended because rank {failed[0]} had failed"
        member.transcript.failure = Failure("hung", phase, step, message=message,
                                            frames=stacks.user_places(frames[member.rank]),
                                            collateral=bool(failed or (where and someone_left)))
        member.pending, member.usable = False, False


def mark_followers(transcripts: list[Transcript]) -> None:
    """Mark failures that tell of a lost connection, where another rank's failure is the first one."""
    failures = [t.failure for t in transcripts if t.failure is not None]
    if any(not (f.collateral or lost_peer(f)) for f in failures):
        for failure in failures:
            failure.collateral = failure.collateral or lost_peer(failure)


def lost_peer(failure: Failure) -> bool:
    """Whether the failure is only the news of another rank's end."""
    if failure.kind not in ("raised", "killed"):
        return False
    message = failure.message.lower()
    return any(phrase in message for phrase in _LOST_PEER)
