import torch
from lightning import LightningDataModule
from torch.utils.data import DataLoader, TensorDataset


class DigitsDataModule(LightningDataModule):
    """In a real project prepare_data() downloads; here the digits are noise."""

    def __init__(self, data_dir: str = "data/", batch_size: int = 64) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.data_train: TensorDataset | None = None

    def prepare_data(self) -> None:
        pass

    def setup(self, stage: str | None = None) -> None:
        if self.trainer is not None and self.hparams.batch_size % self.trainer.world_size:
            raise RuntimeError("the batch size is not divisible by the number of devices")
        if self.data_train is None:
            self.data_train = TensorDataset(torch.rand(256, 1, 8, 8), torch.randint(0, 10, (256,)))

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.data_train, batch_size=self.hparams.batch_size, shuffle=True)
