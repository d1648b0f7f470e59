"""What the parameters of a loss are called that has some of its own."""

import functools

import torch
from torch import nn

from ddplint.record.criterion import criterion_parameters
from ddplint.record.source import set_folder

set_folder(__file__.rpartition("/")[0])
HELD = {}


class Margin(nn.Bilinear):
    def __init__(self):
        super().__init__(2, 2, 2, bias=False)


class Wrapped:
    def __init__(self, loss):
        self.loss = loss

    def __call__(self, outputs, batch):
        return self.loss(outputs, batch)


def helper(outputs, batch):
    return HELD["loss"](outputs, batch)


def loss_terms(outputs, batch):
    return {"margin": helper(outputs, batch)}


def names(*calls, model=None):
    return sorted(criterion_parameters(list(calls), model or nn.Linear(2, 2)).values())


def test_a_module_that_is_the_loss_or_is_held_by_it():
    loss = Margin()
    assert names(loss) == names(functools.partial(loss)) == names(Wrapped(loss)) == names(loss.forward) == ["criterion.weight"]
    assert names(lambda outputs, batch: loss(outputs, batch)) == ["criterion.weight"]


def test_a_module_in_the_globals_of_the_file_read_by_a_helper():
    assert names(loss_terms) == []
    HELD["loss"] = nn.Sequential(Margin())
    assert names(loss_terms) == ["criterion.0.weight"]
    HELD.clear()


def test_of_several_each_bears_its_class_name():
    assert names(Margin(), nn.Bilinear(1, 1, 1)) == ["criterion.Bilinear.bias", "criterion.Bilinear.weight", "criterion.Margin.weight"]


def test_the_models_own_are_none_of_it():
    model = nn.Sequential(Margin())
    assert names(model[0], Wrapped(model), nn.CrossEntropyLoss(), model=model) == []


def test_a_plain_tensor_that_wants_a_gradient_is_named_like_a_parameter():
    class Uncertainty:
        def __init__(self):
            self.log_vars, self.weights = torch.zeros(2, requires_grad=True), [torch.ones(2), torch.ones(1, requires_grad=True)]

        def __call__(self, outputs, batch):
            return outputs * self.log_vars.exp()

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.log_vars = torch.zeros(2, requires_grad=True)
    assert names(Uncertainty()) == ["criterion.log_vars", "criterion.weights.1"]
    assert names(Module()) == ["criterion.log_vars"]
    assert names(Wrapped(Uncertainty())) == ["criterion.log_vars", "criterion.weights.1"]
