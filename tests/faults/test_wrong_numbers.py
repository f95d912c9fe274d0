"""Numbers of the wrong kind or count reach no compiled code, and are not cut to whole ones."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from chordal.inference import INFERENCE
from chordal.objectives import OBJECTIVES
from chordal.potentials import Potentials, matching_potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Matching, Tree
from chordal.targets import PartialLabels, SoftLabels, add_target

CHAINS = Chain([3] * 50, 2)
MODEL = Potentials(CHAINS, np.zeros(300), np.zeros(4))
NO_NUMBERS = [["1"], [None], [1j], [[1], [1, 2]], object(), sp.eye(2), {"a": 1}]


@pytest.mark.parametrize("label", [np.nan, 0.5, -0.5, np.inf, 1e300, "0", None, 1j])
def test_labels_that_are_no_whole_numbers(label):
    labels = [label] + [0] * 149
    for ask in (MODEL.score, MODEL.zeros().add_indicators):
        with pytest.raises(ValueError, match="labels must be whole numbers, got"):
            ask(labels)
    assert MODEL.score(np.ones(150)).tolist() == [0.0] * 50


SHORT = [np.zeros(0), np.ones(49), np.ones((50, 1)), np.ones(50, dtype=np.float32), [1.0] * 50, 1.0]


@pytest.mark.parametrize("weight", SHORT, ids=str)
def test_weights_that_do_not_fit_the_examples(weight):
    for method in ("chain", "tree", "junction_tree", "loopy_bp", "mean_field", "gibbs"):
        with pytest.raises(ValueError, match=re.escape("weight must be None or float64 of shape")):
            INFERENCE.resolve(method).marginals(MODEL, weight)
    chain = INFERENCE.resolve("chain")
    soft = SoftLabels(np.full(300, 0.5), [2] * 150)
    for ask in (
        lambda: chain.marginals_derivative(MODEL, MODEL, weight=weight),
        lambda: INFERENCE.resolve("ad3").relaxed_map(MODEL, weight=weight),
        lambda: MODEL.zeros().add_indicators(np.zeros(150), 1.0, weight),
        lambda: add_target(MODEL.zeros(), soft, 1.0, weight),
    ):
        with pytest.raises(ValueError, match="one per example"):
            ask()


@pytest.mark.parametrize("name", ["likelihood", "hinge", "pseudo_likelihood", "piecewise"])
@pytest.mark.parametrize("weight", SHORT, ids=str)
def test_weights_of_objectives(name, weight):
    with pytest.raises(ValueError, match="one per example"):
        OBJECTIVES.resolve(name).evaluate(
            MODEL, np.zeros(150, dtype=np.int32), INFERENCE.resolve("chain"), weight
        )


def test_weights_that_fit():
    weight = np.full(50, 2.0)
    assert INFERENCE.resolve("chain").marginals(MODEL, weight).parts.unary.sum() == 300.0


@pytest.mark.parametrize("value", [*NO_NUMBERS, [2.5], [np.nan], [10**30]])
def test_counts_that_are_no_whole_numbers(value):
    for make in (
        lambda: Chain(value, 2),
        lambda: Chain([1], value),
        lambda: Graph(value, [[]], 2),
        lambda: FactorGraph(value, [[]], 2),
        lambda: Matching(value, [1]),
        lambda: Tree([value], 2),
        lambda: Grid([value], 2),
        lambda: PartialLabels(np.ones(2, dtype=bool), value),
        lambda: Potentials(Chain([2], 2), np.zeros(4), np.zeros(4), value),
    ):
        with pytest.raises(ValueError, match="must be whole numbers, got"):
            make()


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_scores_that_are_no_numbers(value):
    for make in (
        lambda: Potentials(Chain([1], 2), value, []),
        lambda: Potentials(Chain([2], 2), np.zeros(4), value),
        lambda: matching_potentials([value]),
        lambda: matching_potentials([np.eye(2)], [value]),
    ):
        with pytest.raises(ValueError, match="must be numbers, got"):
            make()


@pytest.mark.parametrize("value", [3, None, "ab", {0: [1]}, sp.eye(2), object()])
def test_lists_that_are_none(value):
    for make in (
        lambda: Grid(value, 2),
        lambda: Tree(value, 2),
        lambda: Graph([2], value, 2),
        lambda: FactorGraph([2], value, 2),
        lambda: FactorGraph([2], [value], 2),
        lambda: matching_potentials(value),
    ):
        with pytest.raises(TypeError, match="must be a list with an entry per example, got"):
            make()


def test_other_things_than_scores_and_generators():
    chain = INFERENCE.resolve("chain")
    for wrong in (None, np.zeros(4), CHAINS):
        with pytest.raises(TypeError, match="map needs Potentials, got"):
            chain.map(wrong)
    for wrong in (None, 5, np.random.RandomState(0)):
        with pytest.raises(TypeError, match="rng must be a numpy Generator"):
            chain.sample(MODEL, 2, wrong)
    with pytest.raises(ValueError, match=re.escape("no_target must have an entry per example (1)")):
        matching_potentials([np.eye(2)], [])
    with pytest.raises(ValueError, match="neighbours must be 4 or 8"):
        Grid([(2, 2)], 2, neighbours=[4])
