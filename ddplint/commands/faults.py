"""What torch prints when a DDP job fails, and which rule that is.

The texts are those of torch 2.6 - 2.13: ``torch/csrc/distributed/c10d/reducer.cpp``, ``torch/nn/parallel/distributed.py``,
``ProcessGroupGloo.cpp``, ``ProcessGroupNCCL.cpp`` and autograd.
"""

import re
from dataclasses import dataclass

LINT = "ddplint +model=NAME +scenario=NAME"


@dataclass(frozen=True)
class Fault:
    """A text of torch's, what it means, and what to type next."""

    says: str
    """A regular expression; a space stands for any white space, for logs are wrapped."""
    rule: str
    means: str
    next: str = LINT
    collateral: bool = False
    """Whether this only follows from something else: a lost peer, a bare exit status."""

    @property
    def pattern(self) -> re.Pattern:
        return re.compile(self.says.replace(" ", r"\s+"))


# One message of DDP's and its parts: the first that a log shows tells the others' news too.
UNFINISHED = (
    Fault("Expected to have finished reduction in the prior iteration.{0,80}This error indicates that your training graph"
          "|Your training graph has changed in this iteration", "static-graph-violated",
          "under static_graph=True the parameters that get gradients, or how often, differ from those of the first step",
          f"{LINT} ddp.static_graph=false"),
    Fault("Expected to have finished reduction in the prior iteration", "unused-parameter",
          "trainable parameters got no gradient in the step before this one; DDP says so one step late, at the next "
          "forward, and by index"),
    Fault("Parameters? (?:indices )?which did not receive grad for rank", "unused-parameter",
          "the last line of a message of DDP's: these parameters got no gradient in the step before"),
)
FAULTS = (
    *UNFINISHED,
    Fault("Expected to mark a variable ready only once|has been marked as ready twice", "parameter-ready-twice",
          "a parameter's gradient was computed twice within one backward: it is used in several reentrant checkpoints, "
          "or by several forward passes before one backward"),
    Fault("DDP expects same model across all ranks", "parameter-mismatch",
          "the ranks built models with different numbers of parameters"),
    Fault("appears not to match (?:sizes|strides) of the same param in process", "parameter-mismatch",
          "the ranks built models whose parameters differ in shape, layout or order"),
    Fault("Modules with uninitialized parameters can't be used", "uninitialized-parameter",
          "a lazy module has not seen an input yet when DDP is built"),
    Fault("DistributedDataParallel is not needed when a module doesn't have any parameter", "changed-after-wrap",
          "no parameter requires a gradient when DDP is built; unfreeze before the wrap"),
    Fault("Detected mismatch between collectives on ranks", "collective-mismatch",
          "the ranks called different collectives, or the same with other shapes, at the same moment"),
    Fault("op\\.preamble\\.length <= op\\.nbytes(?:.{0,90}distributed collective mismatch)?"
          "|distributed collective mismatch", "collective-mismatch",
          "gloo received more bytes than it waits for: the ranks are in different collectives, as when one skips a backward"),
    Fault("Watchdog caught collective operation timeout", "collective-mismatch",
          "NCCL waited in a collective that another rank never entered"),
    Fault("failed to pass monitoredBarrier", "collective-mismatch",
          "some ranks did not come to a barrier in time; the rank that is named may be innocent"),
    Fault("Timed out waiting \\d+\\s*ms for (?:recv|send) operation", "collective-mismatch",
          "gloo waited for another rank in vain: it skipped the step, is much slower, or has ended"),
    Fault("modified by an inplace operation", "buffer-modified-inplace",
          "something that backward needs was overwritten: under DDP often a buffer, which is broadcast at every forward, "
          "when several forwards come before one backward"),
    Fault("find_unused_parameters=True was specified in DDP constructor, but did not find any unused",
          "find-unused-parameters-needless",
          "this step used every parameter; the flag may still be needed in others, which is what ddplint tries"),
    Fault("does not require grad and does not have a grad_fn", "loss-without-grad",
          "backward() was called on a loss that no parameter reaches"),
    Fault("grad can be implicitly created only for scalar outputs", "nonscalar-loss",
          "backward() was called on a loss that is no scalar"),
    Fault("Grad strides do not match bucket view strides", "gradient-layout",
          "a gradient is laid out differently from DDP's bucket and copied at every step: slower, not wrong"),
    Fault("returned nan values in its \\d+th output", "nonfinite-gradient",
          "anomaly mode found NaN in a backward; it may be masked out later"),
    Fault("Expected more than 1 value per channel when training", "batchnorm-per-rank",
          "BatchNorm in training got a single value per channel on this rank"),
    Fault("CUDA out of memory|torch\\.OutOfMemoryError|CUDA error: out of memory", "rank-failure",
          "a rank ran out of GPU memory", f"{LINT} report.verbose=true"),
    Fault("device-side assert triggered", "rank-failure",
          "an index or a label is out of range in a CUDA kernel; the traceback's line may be a later one, on the CPU it is the right one",
          f"{LINT} run.device=cpu"),
    Fault("CUDA error: (?:an illegal memory access|misaligned address|unspecified launch failure)", "rank-failure",
          "a CUDA kernel read or wrote where it may not; the traceback's line may be a later one",
          f"CUDA_LAUNCH_BLOCKING=1 {LINT}"),
    Fault("Duplicate GPU detected", "rank-failure", "two ranks use one GPU; set the device by LOCAL_RANK"),
    Fault("(?:ncclUnhandledCudaError|ncclSystemError|ncclInternalError|ncclInvalidUsage|ncclInvalidArgument"
          "|NCCL error in:|NCCL WARN)", "rank-failure",
          "NCCL failed below torch; NCCL_DEBUG=INFO tells more", f"{LINT} run.device=cpu"),
    Fault("terminated with signal SIG\\w+|Signal \\d+ \\(SIG\\w+\\)|exitcode\\s*: -\\d+", "rank-failure",
          "a rank was killed by a signal (SIGKILL is mostly the system's out-of-memory killer)"),
    Fault("process \\d+ terminated with exit code \\d+|exitcode\\s*: [1-9]\\d*", "rank-failure",
          "a rank ended by itself; its own traceback, further up or in its own log, says why", collateral=True),
    Fault("Connection closed by peer|Connection reset by peer|ncclRemoteError|Broken pipe|recvValue failed"
          "|Some NCCL operations have failed or timed out", "rank-failure",
          "this rank only lost its peer: look at the other ranks' logs", collateral=True),
)
