"""Gibbs sampling: its stationary distribution, constraints, and diagnostics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import UnsupportedError
from chordal.inference import effective_sample_size, r_hat
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.gibbs import GibbsInference
from chordal.potentials import Potentials
from chordal.structures import Chain, Structure
from chordal.testing import MODELS

MIXING = ["chain_tied", "chain_varied_labels", "loop_of_three", "triplets", "chain_batch"]


@pytest.mark.parametrize("name", MIXING)
def test_marginals_come_near_the_exact_ones(name):
    p = MODELS[name](np.random.default_rng(0))
    exact = ExhaustiveInference().marginals(p).parts
    found = GibbsInference(n_draws=4000).marginals(p)
    assert_allclose(found.parts.unary, exact.unary, atol=0.04)
    assert_allclose(found.parts.tables, exact.tables, atol=0.12)
    assert np.isnan(found.log_partition).all()


def test_one_sweep_keeps_the_exact_distribution():
    # Started from exact samples, draws after a sweep must be exact samples too.
    from chordal.inference._sweeps import sweep

    p = MODELS["triplets"](np.random.default_rng(0))
    exact, rng = ExhaustiveInference(), np.random.default_rng(1)
    labels = exact.sample(p, 40_000, rng)
    before = labels.copy()
    sweep(p, labels, 1, rng)
    assert (labels != before).any()
    frequency = [(labels[:, v] == 1).mean() for v in range(7)]
    assert_allclose(frequency, exact.marginals(p).parts.unary[1::2], atol=0.012)


def test_chains_stay_at_allowed_labellings():
    for name in ("chain_forbidden_transitions", "chain_last_resort", "chain_one_labelling"):
        p = MODELS[name](np.random.default_rng(0))
        drawn = GibbsInference().sample(p, 50, np.random.default_rng(0))
        assert np.isfinite([p.score(labels) for labels in drawn]).all()


def test_no_allowed_labelling_found_is_said():
    loop = Structure(
        [2, 2, 2],
        variable_offsets=np.array([0, 3]),
        scopes=np.array([0, 1, 1, 2, 0, 2]),
        scope_offsets=np.array([0, 2, 4, 6]),
        clique_offsets=np.array([0, 3]),
    )
    differ = np.array([-np.inf, 0.0, 0.0, -np.inf])  # three variables with two labels cannot
    p = Potentials(loop, np.zeros(6), np.tile(differ, 3))
    with pytest.raises(UnsupportedError, match="'gibbs' has found no allowed labelling"):
        GibbsInference().marginals(p)


def test_the_seed_decides():
    p = MODELS["loop_of_three"](np.random.default_rng(0))
    a, b, c = (GibbsInference(random_state=k).marginals(p).parts.unary for k in (0, 0, 1))
    assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_diagnostics_tell_mixing_from_sticking():
    easy = Potentials(Chain([6], 2), np.zeros(12), np.zeros(4))
    found = GibbsInference().diagnose(MODELS["loop_of_three"](np.random.default_rng(0)))
    assert found.r_hat[0] < 1.02
    assert found.effective_sample_size[0] > 200
    assert GibbsInference().diagnose(easy).r_hat[0] == 1.0  # every labelling has the same score
    # Strong ties: no chain leaves the mode it has found, and one mode is better.
    stuck = Potentials(Chain([2], 2), [0.5, 0.0, 0.5, 0.0], 40.0 * np.eye(2).ravel())
    found = GibbsInference(n_chains=8).diagnose(stuck)
    assert found.r_hat[0] == np.inf
    assert found.effective_sample_size[0] < 20


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    rng, n = np.random.default_rng(0), 20_000
    noise = rng.normal(size=(4, n))
    x = np.zeros((4, n))
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    assert_allclose(effective_sample_size(x), 4 * n * (1 - rho) / (1 + rho), rtol=0.2)
    assert r_hat(x) < 1.01


def test_diagnostics_of_constant_chains():
    assert r_hat(np.ones((2, 10))) == 1.0
    assert r_hat(np.array([[1.0], [2.0]]) * np.ones((2, 10))) == np.inf
    assert effective_sample_size(np.ones((2, 10))) == 20
    with pytest.raises(ValueError, match="n_draws >= 4"):
        r_hat(np.ones((2, 3)))
