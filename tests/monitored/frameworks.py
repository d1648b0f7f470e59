"""Under torchrun: ``frameworks.py lightning|hugging-face`` trains four steps with a head that no loss reads."""

import json
import logging
import os
import sys
import warnings

import torch
from ddplint.examples.multitask import MultiTaskNet
from torch import nn
from torch.nn.functional import cross_entropy

warnings.simplefilter("ignore")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
logging.basicConfig(level=logging.ERROR)


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"image": torch.randn(3, 16, 16, generator=generator), "labels": index % 10}


def with_lightning():
    import lightning.pytorch as pl
    from lightning.pytorch.strategies import DDPStrategy

    from ddplint.monitor.lightning import DDPLint

    class Task(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = MultiTaskNet(10, 20)

        def training_step(self, batch, index):
            return cross_entropy(self.net(batch["image"])["cls"], batch["labels"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    callback = DDPLint(every=2)
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy(process_group_backend="gloo", find_unused_parameters=True),
                         max_steps=4, callbacks=[callback], logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Task(), torch.utils.data.DataLoader(Images(), batch_size=2))
    return callback.monitor


def with_hugging_face():
    from transformers import Trainer, TrainingArguments

    from ddplint.monitor.hugging_face import DDPLint

    class Task(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = MultiTaskNet(10, 20)

        def forward(self, image, labels):
            output = self.net(image)
            return {"loss": cross_entropy(output["cls"], labels), "logits": output["cls"]}

    callback = DDPLint(every=2)
    options = TrainingArguments("unused", max_steps=4, per_device_train_batch_size=2, use_cpu=True, ddp_backend="gloo",
                                ddp_find_unused_parameters=True, save_strategy="no", report_to=[], disable_tqdm=True,
                                remove_unused_columns=False, dataloader_pin_memory=False, logging_strategy="no")
    Trainer(Task(), options, train_dataset=Images(), callbacks=[callback]).train()
    return callback.monitor


if __name__ == "__main__":
    monitor = {"lightning": with_lightning, "hugging-face": with_hugging_face}[sys.argv[1]]()
    if os.environ["RANK"] == "0":
        print("TOLD", json.dumps([monitor.step, [[f.rule, f.group, f.message] for f in monitor.findings]]))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
