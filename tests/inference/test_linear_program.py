"""The linear programming relaxation: bounds, corners, rounding."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference._polytope import Polytope
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.linear_program import LinearProgramInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid
from chordal.testing.generators import INFEASIBLE, MODELS

LP = LinearProgramInference()


def test_the_columns_and_rows_of_a_triplet():
    """Every labelling is a point of the polytope, with its score."""
    graph = FactorGraph([3, 2], [[(0, 2), (2, 0, 1)], [(0, 1)]], n_labels=[2, 3, 2, 3, 2])
    rng = np.random.default_rng(0)
    p = Potentials(graph, rng.normal(size=12), rng.normal(size=22))
    labels = np.array([1, 2, 0, 2, 1])
    indicator = p.zeros()
    indicator.add_indicators(labels)
    for example in range(2):
        polytope = Polytope(p, example)
        x = np.concatenate([indicator.unary[polytope.states], indicator.tables[polytope.cells]])
        assert_array_equal(polytope.matrix @ x, polytope.right)
        assert_allclose(polytope.scores @ x + polytope.shift, p.score(labels)[example], rtol=1e-12)
    assert Polytope(p, 0).matrix.shape == (3 + (2 + 2) + (2 + 2 + 3), 7 + 4 + 12)


@pytest.mark.parametrize("name", ["graph_forbidden", "cliques_of_every_size", "loop_frustrated"])
def test_any_multipliers_give_a_bound(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    best = ExhaustiveInference().map(p).score
    for example in range(p.structure.n_examples):
        polytope = Polytope(p, example)
        for scale in (0.0, 0.1, 10.0):
            multipliers = scale * rng.normal(size=len(polytope.right))
            assert polytope.bound_by(multipliers) >= best[example] - 1e-12


def test_submodular_models_have_whole_corners():
    rng = np.random.default_rng(0)
    p = Potentials(Grid([(12, 12)], 2), rng.normal(size=288), [0.7, 0.0, 0.0, 0.7])
    best = LP.map(p)
    assert_allclose(best.gap, 0.0, atol=1e-9)
    assert_allclose(LP.relaxed_map(p).value, best.score, rtol=1e-12)


def test_a_colouring_in_halves():
    """Three neighbours and two colours: the relaxation has a solution, the model has none."""
    p = INFEASIBLE["no_colouring"](np.random.default_rng(0))
    relaxed = LP.relaxed_map(p)
    assert_allclose(relaxed.parts.unary[4:], 0.5)
    found = LP.map(p)
    assert found.score[1] == -np.inf
    assert np.isfinite(found.bound).all()
    with pytest.raises(InfeasibleError, match="example 1"):
        LP.map(INFEASIBLE["no_label_in_a_tree"](np.random.default_rng(0)))


def test_rounding_keeps_constraints():
    """Halves everywhere: labelled one after another, no two neighbours get the same colour."""
    grid = Grid([(6, 6)], n_labels=2)
    p = Potentials(grid, np.zeros(72), [-np.inf, 0.0, 0.0, -np.inf])
    assert_allclose(LP.map(p).score, 0.0)


def test_too_large_is_refused():
    small = LinearProgramInference(max_columns=20)
    p = Potentials(Graph([4], [[(0, 1)]], n_labels=4), np.zeros(16), np.zeros(16))
    with pytest.raises(UnsupportedError, match=r"'linear_program' would need .* 32 columns"):
        small.relaxed_map(p)
    with pytest.raises(ValueError, match="max_columns must be an integer"):
        LinearProgramInference(max_columns=0.5)
