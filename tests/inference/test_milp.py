"""MAP by mixed-integer programming: proofs, limits, hard constraints."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.milp import MILPInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid

PETERSEN = [
    *[(k, (k + 1) % 5) for k in range(5)],
    *[(5 + k, 5 + (k + 2) % 5) for k in range(5)],
    *[(k, k + 5) for k in range(5)],
]


def spin_glass(shape, seed, neighbours=4):
    """Couplings of both signs: the relaxation is far from any labelling."""
    rng = np.random.default_rng(seed)
    grid = Grid([shape], n_labels=2, neighbours=neighbours)
    coupling = rng.normal(size=(grid.n_cliques, 1, 1)) * (2 * np.eye(2) - 1)
    return Potentials(grid, 0.3 * rng.normal(size=grid.n_states), coupling)


@pytest.mark.parametrize("seed", range(4))
def test_spin_glasses_are_solved_exactly(seed):
    p = spin_glass((3, 4), seed, neighbours=8)
    best = MILPInference().map(p)
    assert_allclose(best.score, ExhaustiveInference().map(p).score, rtol=1e-12)
    assert_allclose(best.gap, 0.0)
    assert best.convergence.status is Status.CONVERGED


def test_colourings():
    """The Petersen graph has chromatic number 3."""
    graph = Graph([10], [PETERSEN], n_labels=3)
    differ = np.where(np.eye(3) == 1, -np.inf, 0.0)
    favour = np.zeros((10, 3))
    favour[:, 0] = 1.0
    best = MILPInference().map(Potentials(graph, favour, differ))
    colours = best.labels
    assert all(colours[a] != colours[b] for a, b in PETERSEN)
    assert_allclose(best.score, 4.0)  # its largest independent set
    two = Potentials(Graph([10], [PETERSEN], 2), np.zeros(20), [-np.inf, 0.0, 0.0, -np.inf])
    with pytest.raises(InfeasibleError, match="no labelling of example 0"):
        MILPInference().map(two)


def test_large_cliques():
    """At most two of any four neighbours, on a ring of ten."""
    ring = [tuple((k + i) % 10 for i in range(4)) for k in range(10)]
    allowed = np.array([sum(y) <= 2 for y in itertools.product([0, 1], repeat=4)])
    rng = np.random.default_rng(0)
    graph = FactorGraph([10], [ring], n_labels=2)
    p = Potentials(graph, rng.normal(size=20) + [0, 1] * 10, np.where(allowed, 0.0, -np.inf))
    assert_allclose(MILPInference().map(p).score, ExhaustiveInference().map(p).score, rtol=1e-12)


def test_out_of_time():
    p = spin_glass((30, 30), seed=0)
    found = MILPInference(time_limit=0.3).map(p)
    assert found.convergence.status is Status.MAX_TIME
    assert found.bound[0] > found.score[0]
    if np.isfinite(found.score[0]):
        assert_allclose(found.score, p.score(found.labels), rtol=1e-12)
    # The bound is not worse than that of each label and edge by itself.
    alone = p.unary.reshape(-1, 2).max(axis=1).sum() + np.abs(p.tables[::4]).sum()
    assert found.bound[0] <= alone + 1e-6


def test_too_large_is_refused_before_any_work():
    p = Potentials(Grid([(10, 10)], 5), np.zeros(500), np.zeros(25))
    method = MILPInference(max_columns=1000)
    assert not method.supports(p.structure)
    assert not method.exact_on(p.structure)
    with pytest.raises(UnsupportedError, match=r"'milp' would need a program of 5,000 columns"):
        method.map(p)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_columns": 0}, "max_columns must be an integer of at least 1"),
        ({"time_limit": 0.0}, "time_limit must be a number above 0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        MILPInference(**parameters)
