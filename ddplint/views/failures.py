"""DDP's and torch's own words for a failure, told apart; each class has rules that name its cause."""

import re

from ddplint.evidence import Failure, RankSeen, StepSeen

DEVICE = {
    "device-memory": ("cuda out of memory", "cuda error: out of memory"),
    "device-assert": ("device-side assert triggered",),
    "device-access": ("illegal memory access", "misaligned address", "invalid program counter", "unspecified launch failure"),
    "device-error": ("cuda error:", "cublas_status", "cudnn_status", "cufft_", "unhandled cuda error"),
}
"""What a GPU says. After any but the first, no CUDA call of this process succeeds again."""

# Class -> what its message contains. The first that fits counts.
MESSAGES = {
    **DEVICE,
    "graph-changed": ("training graph has changed", "graph structure changes"),
    "ready-twice": ("mark a variable ready only once", "marked as ready twice", "marked ready only once"),
    "unfinished": ("expected to have finished reduction",),
    "undefined": ("encountered gradient which is undefined",),
    "graph-used-up": ("backward through the graph a second time",),
    "recomputed": ("a different number of tensors was saved during the original forward", "have different metadata than during the forward",
                   "trying to save more tensors during recomputation"),
    "inplace": ("modified by an inplace operation",),
    "uninitialized": ("uninitialized parameters",),
    "one-value": ("expected more than 1 value per channel",),
    "size-mismatch": ("appears not to match sizes", "appears not to match strides", "params in process 0",
                      "expects same model across all ranks"),
    "no-grad": ("does not require grad and does not have a grad_fn",),
    "nonscalar": ("grad can be implicitly created only for scalar outputs",),
    "loader-ended": ("ended before step",),
    "collective": ("distributed collective mismatch", "collective mismatch", "op.preamble.length <= op.nbytes",
                   "received data size doesn't match", "timed out", "timeout", "collectives mismatch"),
    "collateral": ("connection closed by peer", "connection reset by peer", "broken pipe", "socket closed"),
    "not-finite": ("non-finite", "nonfinite", "contains nan", "contains either `inf`", "is nan", "float nan", "float infinity",
                   "found invalid values"),
}

OF_THE_REDUCER = ("graph-changed", "unfinished", "undefined", "collective", "collateral")
"""What DDP raises because gradients are missing, here or on another rank: those that were not seen did not come."""


def classify(failure: Failure) -> str:
    """A key of MESSAGES, ``hang`` for a rank that was stopped as hung, or ``other``."""
    if failure.collateral:
        return "collateral"
    if failure.kind == "hung":
        return "hang"
    text = failure.message.lower()
    if failure.kind != "raised":        # gloo aborts where the ranks' messages do not fit together, NCCL's watchdog where it waits in vain
        return next((name for name in (*DEVICE, "collective") if any(part in text for part in MESSAGES[name])), "other")
    found = next((name for name, parts in MESSAGES.items() if any(part in text for part in parts)), "other")
    if found in ("collective", "collateral") and not failure.type.startswith(("RuntimeError", "Dist")):
        return "other"          # the user's own TimeoutError or ConnectionResetError
    return "other" if found == "loader-ended" and failure.type != "LoaderEnded" else found


def breaks_device(failure: Failure) -> bool:
    """Whether the process cannot use its GPU any more."""
    return classify(failure) in DEVICE and classify(failure) != "device-memory"


def named_parameters(failure: Failure) -> list[str]:
    """The parameter names that DDP's message gives (with TORCH_DISTRIBUTED_DEBUG set, or ready twice)."""
    return re.findall(r"with name ([\w.]+?)(?: has|[,.]?\s|$)", failure.message)


def stopped_within(rank: RankSeen, step: StepSeen) -> bool:
    """Whether DDP ended this backward at a gradient that was ready twice: what it had not come to yet is not missing."""
    failure = rank.failure
    return failure is not None and failure.step == step.step and step.phase != "foreseen" and classify(failure) == "ready-twice"


def more_was_due(rank: RankSeen, step: StepSeen) -> bool:
    """Whether this step raised in a backward, or after a forward whose backward had not come, for no reason of DDP's own."""
    failure = rank.failure
    if failure is None or failure.kind != "raised" or failure.step != step.step or step.phase == "foreseen" \
            or classify(failure) in OF_THE_REDUCER:
        return False
    last = next((e.kind for e in reversed(rank.events) if e.kind in ("forward", "backward") and e.detail != "no-grad"), "")
    return failure.phase == "backward" or last == "forward"
