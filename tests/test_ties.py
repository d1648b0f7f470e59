"""Ties that were made while a model was built, and what became of them."""

import copy

import pytest
import torch
from torch import nn

from ddplint.record.ties import ties_watched


class Language(nn.Module):
    def __init__(self, **says):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight
        vars(self).update(says)


def head_assigned(model):
    model.head.weight = nn.Parameter(torch.zeros(5, 4))
    return model


def both_resized(model):
    model.embed = nn.Embedding(6, 4)
    model.head = nn.Linear(4, 6, bias=False)
    return model


def loaded_by_assignment(model):
    model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    return model


def tied_again(model):
    both_resized(model)
    model.head.weight = model.embed.weight
    return model


def copy_frozen(model):
    head_assigned(model)
    model.head.requires_grad_(False)
    return model


def renamed(model):
    model.old_head = model.head
    model.head = nn.Linear(4, 5, bias=False)
    model.head.weight = model.embed.weight
    return model


def lazy(model):
    model.embed, model.head = nn.LazyLinear(4), nn.LazyLinear(5)
    return model


def swapped(model):
    model.first, model.second = nn.Linear(4, 4), nn.Linear(4, 4)
    model.first, model.second = model.second, model.first
    model.first.weight, model.second.weight = model.second.weight, model.first.weight
    return model


@pytest.mark.parametrize(("change", "assigned", "line"), [
    (head_assigned, "head.weight", "model.head.weight = nn.Parameter(torch.zeros(5, 4))"),
    (both_resized, "embed.weight", "model.embed = nn.Embedding(6, 4)"),
    (loaded_by_assignment, "embed.weight", "model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)"),
])
def test_a_tie_that_an_assignment_broke(change, assigned, line):
    with ties_watched() as broken_ties:
        model = change(Language())
    assert [(tie.names, tie.how, tie.place.text) for tie in broken_ties(model)] \
        == [(["embed.weight", "head.weight"], f"one parameter until '{assigned}' was assigned anew", line)]


@pytest.mark.parametrize("change", [lambda model: model, tied_again, copy_frozen, renamed, lazy, swapped])
def test_what_breaks_no_tie(change):
    with ties_watched() as broken_ties:
        model = change(Language())
    assert broken_ties(model) == []


def test_a_model_that_says_it_is_not_tied():
    with ties_watched() as broken_ties:
        model = head_assigned(Language(tie_word_embeddings=False))
    assert broken_ties(model) == []
