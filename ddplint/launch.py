"""Is this process a rank of a launch that someone else has made (torchrun, submitit)?"""

import os


def is_launched() -> bool:
    """Whether this process was started as a rank of a launch."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def is_reporter() -> bool:
    """Whether this process is the one that prints and writes: rank 0 of a launch, or no rank at all."""
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


def join_cluster() -> None:
    """A task of submitit's (``hydra/launcher=submitit_slurm``) that has others beside it becomes a rank, as of torchrun's."""
    if "SUBMITIT_EXECUTOR" not in os.environ or is_launched():
        return
    from submitit import JobEnvironment
    from submitit.helpers import TorchDistributedEnvironment
    if JobEnvironment().num_tasks > 1:
        TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
