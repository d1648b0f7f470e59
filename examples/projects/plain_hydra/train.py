"""The job: torchrun --nproc-per-node 8 train.py"""

import hydra
import torch
import torch.distributed as dist
from omegaconf import DictConfig
from torch.nn.parallel import DistributedDataParallel


def batches(steps: int):
    """In a real project, a loader: some batches come from a catalogue without texts."""
    for step in range(steps):
        text = torch.randint(0, 500, (16, 12)) if step % 3 else None
        yield torch.randn(16, 3, 32, 32), text, torch.randint(0, 8, (16,))


@hydra.main(version_base="1.3", config_path="conf", config_name="train")
def main(config: DictConfig) -> None:
    dist.init_process_group()
    model = DistributedDataParallel(hydra.utils.instantiate(config.model))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    for picture, text, category in batches(config.steps):
        loss = torch.nn.functional.cross_entropy(model(picture, text), category)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
