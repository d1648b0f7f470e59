"""A rank that did not get through."""

from ddplint.evidence import Cause, Failure
from ddplint.rules.base import Problem, rule
from ddplint.rules.words import failure_place
from ddplint.views import ScenarioView

LATE = "CUDA tells it at a later call: with CUDA_LAUNCH_BLOCKING=1 before the command the line is the right one"
ONE_BACKWARD = "call backward() once, on the sum of the losses, or, with find_unused_parameters=true, run the wrapped forward again before " \
    "the next; retain_graph=True only hides it, for DDP averages once after a forward"
REMEDIES = {
    "kept-graph": "detach() what is kept beyond a backward(): the numbers stay, the graph does not",
    "second-backward": ONE_BACKWARD,
    "modified-inplace": "write into a copy (x = x * y in place of x *= y), or let the operation save a clone()",
    "graph-used-up": f"detach() what is kept from one step to the next; else {ONE_BACKWARD}",
    "device-memory": "make the rank's batch or sequence smaller, checkpoint activations, or give each rank a GPU of its own",
    "device-assert": f"look for an index or a label that is out of range; {LATE}, and run.device=cpu says which index",
    "device-access": f"a kernel reads or writes where it may not; {LATE}, and compute-sanitizer names the kernel",
    "device-error": f"look at the GPU (nvidia-smi), its driver, and NCCL_DEBUG=INFO; {LATE}",
    "collective": "look at what the other ranks did in this step: one did not come to the collective that this one waits in",
}
"""Kind of the recorded cause, else class of failure -> what to do."""


@rule(severity="error", checks="steps", specific=5)
def rank_failure(scenario: ScenarioView) -> list[Problem]:
    """A rank raised, exited, was killed or hung, for a reason that no other rule names.

    Why it matters
        The job ends there. DDP often blames an innocent rank ("Connection closed by peer"): this names the one that
        left the others, what it was doing, and the user's line.

    Bad
        batch = next(loader)                                 # raises on one rank only

    Good
        Mend what the message says; the frames are those of your own code.

    When it is fine
        Never.
    """
    own = {name: ranks for name, ranks in scenario.failed_as.items() if name not in ("collateral", "hang")}
    classes = own or {n: r for n, r in scenario.failed_as.items() if n == "hang"} or scenario.failed_as
    problems = []
    for name, failed in classes.items():
        groups: dict[tuple, list[tuple[int, Failure]]] = {}
        for rank, failure in failed:
            groups.setdefault((failure.kind, failure.phase, failure.type, failure.message), []).append((rank, failure))
        problems += [_problem(scenario, name, group) for group in groups.values()]
    return problems


def _problem(scenario: ScenarioView, name: str, failed: list[tuple[int, Failure]]) -> Problem:
    failure = failed[0][1]
    where = f" of {failure.module}" if failure.module else ""
    ran_out = name == "loader-ended" and len(failed) == len(scenario.ranks) and failure.step
    recorded = scenario.cause("failure:")
    recorded = None if recorded and recorded.kind == "unknown" else recorded
    subject = f"failure:{name}" if name != "other" else f"failure:{failure.kind}:{failure.phase}:{failure.message[:80]}"
    return Problem(
        f"{{ranks}} {_ended(failure)}{_doing(failure)}{where}" + (f", step {failure.step}" if failure.step is not None else "")
        + (f": {_said(failure)}" if _said(failure) else ""),
        cause=recorded or Cause("failure", _said(failure) or _ended(failure), failure_place(failure),
                                                  module=failure.module, also=_frames(failure) + _printed(failed)),
        remedy=REMEDIES.get(recorded.kind if recorded else "") or REMEDIES.get(name) or _remedy(failure),
        severity="note" if ran_out else None,       # every rank saw as many steps as its loader has
        modules=[failure.module] if failure.module else [],
        ranks=[rank for rank, _ in failed],
        steps=[failure.step] if failure.step is not None else [],
        about=(subject,),
        covers=("failure:hang", "failure:collateral", "failure:collective", "sequence"),
    )


def _doing(failure: Failure) -> str:
    return "" if failure.phase == "idle" else f" in {failure.phase}"


def _ended(failure: Failure) -> str:
    if failure.kind == "lost":
        return "left the launch"
    if failure.kind == "not run":
        return "did no more"
    if failure.kind == "killed":
        return f"was killed by {failure.type}" if failure.type else "was killed"
    if failure.kind == "exited":
        return f"exited with status {failure.status}"
    if failure.kind == "hung":
        return "hung"
    return f"raised {failure.type}" if failure.type else "raised an exception"


def _said(failure: Failure) -> str:
    return failure.message.strip().split("\n")[0][:300]


def _frames(failure: Failure) -> list[str]:
    return [f"called from {place.file}:{place.line}" for place in failure.frames[-2::-1]][:3]


def _printed(failed: list[tuple[int, Failure]]) -> list[str]:
    return [f"rank {rank} printed: {line}" for rank, failure in failed for line in failure.printed]


def _remedy(failure: Failure) -> str:
    if failure.kind == "not run":
        return "mend what the scenario before ended with, or lint without a launch: there each scenario gets fresh ranks"
    if failure.kind == "lost":
        return "look at that machine: its memory, its own log, and the network between the hosts"
    if failure.phase == "idle":
        return "none of your code had been run yet: look at the machine (memory, load), and run it again"
    if failure.kind == "exited":
        return f"find what ends the process in {failure.phase}: sys.exit(), os._exit(), or a library that gives up"
    if failure.kind == "hung":
        return "look at what the other ranks did in this step: one of them left the common sequence"
    if failure.kind == "killed":
        return "look for the signal's sender: the kernel's out-of-memory killer, or a crash in native code"
    return f"mend what the exception says; it came from your code in {failure.phase}"
