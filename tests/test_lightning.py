"""A LightningModule as it stands: training_step is what DDP runs, without a Trainer."""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="lightning is not installed")

MODULE = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy
import lightning

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem, self.cls, self.seg = nn.Linear(8, width), nn.Linear(width, 3), nn.Linear(width, 5)

    def forward(self, x):
        hidden = self.stem(x).relu()
        return {"cls": self.cls(hidden), "seg": self.seg(hidden)}

class Lit(lightning.LightningModule):
    def __init__(self, net, optimizer, both=False):
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.net = net
        print("a line of the model's own")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        loss = cross_entropy(out["cls"], y)
        if self.hparams.both:
            loss = loss + cross_entropy(out["seg"], y)
        self.log("train/loss", loss, prog_bar=True)
        return {"loss": loss, "logits": out["cls"]}

    def configure_optimizers(self):
        return {"optimizer": self.hparams.optimizer(params=self.trainer.model.parameters())}

class Gan(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = nn.Linear(4, 8), nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        x, = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(len(x), 4)
        self.toggle_optimizer(optimizer_g)
        loss = -self.d(self.g(z)).mean()
        optimizer_g.zero_grad()
        self.manual_backward(loss)
        optimizer_g.step()
        self.untoggle_optimizer(optimizer_g)
        self.toggle_optimizer(optimizer_d)
        loss = self.d(self.g(z).detach()).mean() - self.d(x).mean()
        optimizer_d.zero_grad()
        self.manual_backward(loss)
        optimizer_d.step()
        self.untoggle_optimizer(optimizer_d)

    def configure_optimizers(self):
        return [torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())], []
"""


@pytest.fixture
def lit(project):
    project.write("lit.py", MODULE)
    project.write("configs/model/lit.yaml", """
_target_: lit.Lit
optimizer: {_target_: torch.optim.Adam, _partial_: true, lr: 0.001}
net: {_target_: lit.Net, width: 16}
""")
    project.write("configs/model/gan.yaml", "_target_: lit.Gan\n")
    project.write("configs/scenario/xy.yaml", "xy: {batch: [{shape: [4, 8]}, {shape: [4], integers: [0, 3]}]}\n")
    project.write("configs/scenario/real.yaml", "real: {batch: [{shape: [4, 8]}]}\n")
    return project


def test_a_head_that_training_step_leaves_out(lit):
    ended = lit.ddplint("+model=lit", "+scenario=xy")
    assert ended.status == 1
    assert "error [unused-parameter] net.seg (2 parameters, 85 elements)" in ended.out
    assert "no term of the loss reads output 'forward.seg'" in ended.out
    assert "ddp: xy: error on ranks 0, 1 at step 1: Expected to have finished reduction" in ended.out
    assert "model's own" not in ended.out + ended.err and ended.out.count("error [") == 1


def test_the_healed_one_is_clean(lit):
    ended = lit.ddplint("+model=lit", "+scenario=xy", "+model.both=true", "report.verbose=true")
    assert (ended.status, ended.err) == (0, "")
    assert "The optimizer holds every parameter once (1 examined)" in ended.out


def test_manual_optimisation_is_run_as_lightning_runs_it(lit):
    ended = lit.ddplint("+model=gan", "+scenario=real")
    assert ended.status == 1
    assert "error [varying-usage] d (2 parameters, 9 elements)" in ended.out and "ddp.find_unused_parameters=true" in ended.out
    assert "ddp: real: error on ranks 0, 1 at step 0: Expected to have finished reduction" in ended.out
    ended = lit.ddplint("+model=gan", "+scenario=real", "ddp.find_unused_parameters=true")
    assert (ended.status, ended.err) == (0, "")
