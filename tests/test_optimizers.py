"""Several optimizers in one object of the user's own."""

import torch

from ddplint.record.lightning import Optimizers


class Trainer:
    def __init__(self, model):
        self.weights, self.rest = torch.optim.SGD([model.weight], lr=0.1), [torch.optim.Adam([model.bias])]
        self.plan = torch.optim.lr_scheduler.ConstantLR(self.weights)
        self.first = self.weights


def test_what_an_object_holds_is_looked_at_once_each():
    trainer = Trainer(torch.nn.Linear(2, 2))
    assert Optimizers(trainer).members == [trainer.weights, trainer.rest[0]]


def test_an_object_without_one_holds_no_group():
    assert Optimizers(object()).param_groups == []
