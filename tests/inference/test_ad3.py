"""AD3: the same relaxation as the linear program, certificates, limits."""

import _thread
import itertools
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal._status import Status
from chordal.inference.ad3 import AD3Inference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.linear_program import LinearProgramInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Grid
from chordal.testing.generators import INFEASIBLE

from .test_milp import spin_glass

AD3, LP = AD3Inference(), LinearProgramInference()


@pytest.mark.parametrize("seed", range(3))
def test_fractional_models_have_the_value_of_the_linear_program(seed):
    p = spin_glass((8, 8), seed)
    found, expected = AD3.relaxed_map(p), LP.relaxed_map(p)
    assert found.convergence.status is Status.CONVERGED
    assert_allclose(found.value, expected.value, rtol=1e-6)
    assert found.value >= expected.value - 1e-9
    assert_allclose(found.parts.unary, expected.parts.unary, atol=1e-3)
    assert not np.isin(expected.parts.unary, [0.0, 1.0]).all()


@pytest.mark.parametrize("seed", range(3))
def test_many_labels_and_triplets(seed):
    rng = np.random.default_rng(seed)
    cliques = [tuple(rng.choice(8, size=k, replace=False)) for k in (2, 3, 3, 2, 3, 2, 1, 3)]
    graph = FactorGraph([8], [cliques], n_labels=rng.integers(2, 5, size=8))
    p = Potentials(
        graph, rng.normal(size=graph.n_states), 2 * rng.normal(size=graph.table_sizes.sum())
    )
    assert_allclose(AD3.relaxed_map(p).value, LP.relaxed_map(p).value, rtol=1e-5)


def test_a_certificate():
    rng = np.random.default_rng(0)
    p = Potentials(Grid([(30, 30)], 2), rng.normal(size=1800), [0.5, 0.0, 0.0, 0.5])
    best = AD3.map(p)
    assert_allclose(best.gap, 0.0, atol=1e-6)
    assert (best.convergence.status, best.convergence.change) == (Status.CONVERGED, 0.0)
    assert_allclose(best.score, p.score(best.labels), rtol=1e-12)
    relaxed = AD3.relaxed_map(p)
    assert_array_equal(relaxed.parts.unary.reshape(-1, 2).argmax(axis=1), best.labels)
    assert_array_equal(np.unique(relaxed.parts.unary), [0.0, 1.0])


def test_hard_cliques():
    """One of six in each of three cliques that overlap."""
    groups = [tuple(range(0, 6)), tuple(range(4, 10)), tuple(range(8, 14))]
    one = np.array([sum(y) == 1 for y in itertools.product([0, 1], repeat=6)])
    rng = np.random.default_rng(1)
    graph = FactorGraph([14], [groups], n_labels=2)
    p = Potentials(graph, rng.normal(size=28), np.where(one, 0.0, -np.inf))
    best = AD3.map(p)
    assert_allclose(best.score, ExhaustiveInference().map(p).score, rtol=1e-12)
    assert_allclose(best.gap, 0.0, atol=1e-9)


def test_out_of_iterations_the_bound_still_holds():
    p = spin_glass((4, 4), seed=0)
    best = ExhaustiveInference().map(p).score
    for max_iter in (1, 3, 10):
        found = AD3Inference(max_iter=max_iter).map(p)
        assert found.convergence.n_iter <= max_iter
        assert found.convergence.status is Status.MAX_ITERATIONS
        assert found.bound >= best
        assert found.score <= best + 1e-12


def test_no_labelling():
    p = INFEASIBLE["no_label"](np.random.default_rng(0))
    with pytest.raises(InfeasibleError, match="example 1"):
        AD3.map(p)
    # Each edge could be satisfied by itself: the relaxation has a solution, but no labelling.
    found = AD3.map(INFEASIBLE["no_colouring"](np.random.default_rng(0)))
    assert found.score[1] == -np.inf


def test_examples_do_not_depend_on_each_other():
    rng = np.random.default_rng(0)
    together = Grid([(3, 4), (2, 5)], 3)
    scores = rng.normal(size=together.n_states)
    tables = rng.normal(size=9)
    both = AD3.map(Potentials(together, scores, tables))
    for shape, states, example in (((3, 4), slice(0, 36), 0), ((2, 5), slice(36, 66), 1)):
        alone = AD3.map(Potentials(Grid([shape], 3), scores[states], tables))
        assert alone.score[0] == both.score[example]
        assert alone.bound[0] == both.bound[example]


def test_interrupted():
    p = spin_glass((150, 150), seed=0)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        AD3Inference(max_iter=100_000, tol=1e-15).map(p)
    timer.join()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"tol": 0.0}, "tol must be a number above 0"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        AD3Inference(**parameters)
