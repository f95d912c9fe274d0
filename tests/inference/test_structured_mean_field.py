"""Structured mean field: blocks that are trees, a bound that rises, exact on forests."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.mean_field import MeanFieldInference
from chordal.inference.structured_mean_field import StructuredMeanFieldInference
from chordal.potentials import Potentials
from chordal.structures import Graph, Grid
from chordal.testing import MODELS

method = StructuredMeanFieldInference()
exact = ExhaustiveInference()


def complete(n):
    return Graph([n], [[(a, b) for a in range(n) for b in range(a)]], n_labels=2)


@pytest.mark.parametrize("graph", [Grid([(5, 6)], 2), Grid([(4, 4)], 2, neighbours=8), complete(7)])
def test_blocks_are_forests(graph):
    blocks = method.blocks(graph)
    edges = graph.scopes.reshape(-1, 2)
    assert blocks.min() == 0
    for k in range(blocks.max() + 1):
        own = edges[(blocks[edges] == k).all(axis=1)]
        assert Graph([graph.n_variables], [own], 2).is_forest


def test_a_forest_is_one_block():
    assert method.blocks(Graph([5], [[(3, 1), (1, 0), (4, 2)]], 2)).max() == 0


def test_a_grid_needs_few_blocks():
    blocks = method.blocks(Grid([(20, 20)], 2))
    assert blocks.max() <= 2
    assert (blocks == 0).mean() > 0.5


def test_the_bound_rises_and_is_tighter_than_naive():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        p = Potentials(Grid([(3, 4)], 2), rng.normal(size=24), rng.normal(size=4))
        bounds = [
            StructuredMeanFieldInference(max_iter=k).log_partition(p)[0] for k in (1, 2, 4, 8, 100)
        ]
        assert (np.diff(bounds) >= -1e-10).all()
        assert MeanFieldInference().log_partition(p)[0] < bounds[-1]
        assert bounds[-1] <= exact.log_partition(p)[0]


def test_not_settled_is_said():
    rng = np.random.default_rng(0)
    p = Potentials(Grid([(4, 4)], 2), rng.normal(size=32), rng.normal(size=4))
    assert (
        StructuredMeanFieldInference(max_iter=1).marginals(p).convergence.status
        is Status.MAX_ITERATIONS
    )
    assert method.marginals(p).convergence.status is Status.CONVERGED


def test_a_batch_is_its_examples():
    rng = np.random.default_rng(2)
    grid = Grid([(3, 3), (1, 4), (2, 2)], 3)
    p = Potentials(grid, rng.normal(size=grid.n_states), 0.5 * rng.normal(size=9))
    together = method.marginals(p)
    first = Potentials(Grid([(3, 3)], 3), p.unary[:27], p.tables)
    assert_allclose(together.log_partition[:1], method.log_partition(first), atol=1e-7)
    assert_allclose(together.log_partition[1:2], exact.log_partition(p)[1:2], rtol=1e-12)


def test_larger_cliques_are_refused():
    with pytest.raises(UnsupportedError, match="structured_mean_field"):
        method.marginals(MODELS["triplets"](np.random.default_rng(0)))


@pytest.mark.parametrize("parameters", [{"tol": -1.0}, {"max_iter": 0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        StructuredMeanFieldInference(**parameters)
