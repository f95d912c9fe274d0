"""What StructuredCRF refuses, and that it says where."""

import re

import numpy as np
import pytest
import torch

from chordal import InfeasibleError
from chordal.structures import FactorGraph, Graph, Grid
from chordal.torch import LoopyBP, MeanField, StructuredCRF

from .structures import STRUCTURES, draw, layer

GRID = STRUCTURES["grid"]


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        ("grid", {}, "structure must be one of chordal.structures"),
        (Grid([(2, 2), (2, 2)], 2), {}, "must have one example, .* got 2"),
        (Grid([(0, 2)], 2), {}, "at least one variable, got 0"),
        (Graph([2], [[(0, 1)]], n_labels=[2, 3]), {}, "variable 1 has 3 labels and variable 0 2"),
        (GRID, {"ignore_index": 1}, "ignore_index must not be one of 2 labels, got 1"),
        (GRID, {"inference": "tree"}, "'tree' does not support"),
        (GRID, {"inference": "ad3"}, "inference must be one of 'auto', .*'tree', .* got 'ad3'"),
        (GRID, {"tying": "some"}, "tying must be one of 'all', 'each', 'direction'"),
        (GRID, {"tying": [0, 1]}, "tying must have a table's number for each of 7 cliques"),
        (GRID, {"tying": [0, 0, 0, -1, 0, 0, 0]}, "tying: the table of clique 3 is -1"),
        (GRID, {"tying": [0, 0, 2, 2, 0, 0, 0]}, "tying: no clique has table 1"),
        (STRUCTURES["tree"], {"tying": "direction"}, "'direction' is for a Grid, got Tree"),
        (STRUCTURES["mixed"], {}, r"cliques of \[1, 2, 3\] variables cannot share a table"),
        (STRUCTURES["triples"], {"inference": "loopy_bp"}, "works on edges, but .* 3 variables"),
        (
            Grid([(60, 60)], 4),
            {},
            "Grid.* too large for exact inference; .*'mean_field' or 'loopy_bp'",
        ),
    ],
)
def test_layers_that_cannot_be_made(given, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        StructuredCRF(given, **settings)


@pytest.mark.parametrize("settings", [MeanField, LoopyBP])
def test_settings(settings):
    for given, message in (
        ({"n_iter": 0}, "n_iter must be a whole number of at least 1, got 0"),
        ({"gradient": "both"}, "gradient must be 'unrolled' or 'implicit', got 'both'"),
        ({"tol": 0.0}, "tol must be a number above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            settings(**given)
    with pytest.raises(ValueError, match="damping must be at least 0 and below 1, got 1"):
        LoopyBP(damping=1)


@pytest.mark.parametrize("inference", ["junction_tree", "mean_field", "loopy_bp"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_no_scores(inference, value):
    crf, unary = layer("grid", inference=inference), draw(0, 2, 6, 2)
    tables = draw(1, 2, 7, 2, 2)
    unary[1, 4, 0] = tables[1, 5, 1, 0] = value
    place = re.escape(f"unary: example 1, variable 4, label 0 is {value:+}")
    for question in ("log_partition", "marginals", "decode"):
        with pytest.raises(ValueError, match=place):
            getattr(crf, question)(unary)
    with pytest.raises(ValueError, match="tables: example 1, table 5, label 1, label 0 is"):
        crf.log_partition(draw(0, 2, 6, 2), tables=tables)


def test_approximate_methods_take_finite_tables():
    unary, table = draw(0, 2, 6, 2), torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    for inference in ("mean_field", "loopy_bp"):
        with pytest.raises(ValueError, match=r"tables: label 0, label 1 is -inf; .* finite"):
            layer("grid", inference=inference).marginals(unary, tables=table)


def test_shapes_and_dtypes():
    crf, unary, labels = layer("grid"), draw(0, 2, 6, 2), torch.zeros(2, 6, dtype=torch.long)
    for call, message in (
        (lambda: crf.decode(unary[0]), r"unary must have shape \[batch, 6, 2\]"),
        (lambda: crf.decode(unary[:, :5]), r"got \(2, 5, 2\)"),
        (lambda: crf.decode(unary.long()), "unary must be floating point, got torch.int64"),
        (lambda: crf(unary, labels[:, :3]), r"labels must have shape \(2, 6\)"),
        (lambda: crf(unary, labels.double()), "labels must be integers, got torch.float64"),
        (lambda: crf(unary, unary), "labels as sets must be boolean"),
        (
            lambda: crf(unary, labels + 7),
            "labels: example 0, variable 0 is 7, which is not a label",
        ),
        (lambda: crf(unary, labels, "all"), "invalid reduction: all"),
        (lambda: crf.decode(unary, tables=draw(0, 3, 2, 2)), r"tables must have shape \(2, 2\), "),
        (lambda: crf.decode(unary, tables=draw(0, 5, 1, 2, 2)), r"got \(5, 1, 2, 2\)"),
        (lambda: crf.decode(unary, tables=labels[:2, :2]), "tables must be floating point"),
        (lambda: crf.k_best(unary, 0), "k must be an integer of at least 1, got 0"),
        (lambda: crf.sample(unary, 0), "n must be an integer of at least 1, got 0"),
        (lambda: crf.decode(unary.to("meta")), "unary must be on the device of the layer"),
        (lambda: layer("grid", learned=False).decode(unary), "tables must be given with each call"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_losses_that_need_all_labels():
    crf, unary, labels = layer("grid"), draw(0, 2, 6, 2), torch.zeros(2, 6, dtype=torch.long)
    labels[1, 3] = -100
    for question in ("pseudo_log_likelihood", "hinge_loss", "score"):
        with pytest.raises(ValueError, match=rf"example 1, variable 3 was not .* {question} needs"):
            getattr(crf, question)(unary, labels)
    with pytest.raises(ValueError, match="must be numbers for hinge_loss, not sets"):
        crf.hinge_loss(unary, torch.ones(2, 6, 2, dtype=torch.bool))


@pytest.mark.parametrize("inference", ["mean_field", "loopy_bp"])
def test_questions_that_are_not_answered(inference):
    crf, unary = layer("grid", inference=inference), draw(0, 2, 6, 2)
    for question, given in (("k_best", (2,)), ("sample", ()), ("entropy", ())):
        with pytest.raises(ValueError, match=f"'{inference}' does not compute '{question}'"):
            getattr(crf, question)(unary, *given)


def test_no_labelling_is_allowed():
    crf = StructuredCRF(FactorGraph([2], [[(0, 1)]], n_labels=2))
    unary = torch.zeros(3, 2, 2)
    unary[1, 0] = -torch.inf
    for question in ("log_partition", "marginals", "decode"):
        with pytest.raises(InfeasibleError, match="example 1"):
            getattr(crf, question)(unary)
