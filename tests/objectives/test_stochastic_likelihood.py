"""Stochastic maximum likelihood: what its samples converge to, and who may use it."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.inference.chain import ChainInference
from chordal.inference.gibbs import GibbsInference
from chordal.objectives.likelihood import Likelihood
from chordal.objectives.stochastic_likelihood import StochasticLikelihood
from chordal.solvers import Solver
from chordal.solvers.adam import Adam
from chordal.testing import MODELS, feasible_labels


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    p = MODELS["chain_tied"](rng)
    return p, feasible_labels(p, rng)


def mean_parts(loss, p, gold, inference, n):
    unary, tables = np.zeros(len(p.unary)), np.zeros(len(p.tables))
    for _ in range(n):
        parts = loss.evaluate(p, gold, inference).parts
        unary, tables = unary + parts.unary / n, tables + parts.tables / n
    return unary, tables


@pytest.mark.parametrize("samples", ["persistent", "inference"])
def test_the_mean_of_many_estimates_is_the_likelihoods_derivative(problem, samples):
    p, gold = problem
    exact = Likelihood().evaluate(p, gold, ChainInference()).parts
    loss = StochasticLikelihood(samples, n_samples=20)
    unary, tables = mean_parts(loss, p, gold, ChainInference(), 1000)
    assert_allclose(unary, exact.unary, atol=0.03)
    assert_allclose(tables, exact.tables, atol=0.06)


def test_gibbs_can_give_the_samples(problem):
    p, gold = problem
    exact = Likelihood().evaluate(p, gold, ChainInference()).parts
    loss = StochasticLikelihood("inference", n_samples=40)
    unary, _ = mean_parts(loss, p, gold, GibbsInference(burn_in=20), 100)
    assert_allclose(unary, exact.unary, atol=0.06)


def test_contrastive_divergence_is_zero_where_gold_cannot_be_left():
    rng = np.random.default_rng(0)
    p = MODELS["chain_one_labelling"](rng)
    values, parts = StochasticLikelihood("contrastive").evaluate(
        p, feasible_labels(p, rng), ChainInference()
    )
    assert not values.any()
    assert not parts.unary.any()
    assert not parts.tables.any()


def test_chains_go_on_or_start_again(problem):
    p, gold = problem
    for samples, moves in (("persistent", True), ("contrastive", False)):
        loss = StochasticLikelihood(samples, n_samples=500, n_sweeps=1)
        first = loss.evaluate(p, gold, ChainInference()).values
        for _ in range(5):
            later = loss.evaluate(p, gold, ChainInference()).values
        drift = abs(later.sum() - first.sum())
        assert bool(drift > 0.4) is moves


def test_a_copy_starts_again_with_the_same_numbers(problem):
    p, gold = problem
    loss = StochasticLikelihood(n_samples=3)
    again = copy.deepcopy(loss)
    runs = [[o.evaluate(p, gold, ChainInference()).values for _ in range(4)] for o in (loss, again)]
    assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0][0], runs[0][3])


class Steps(Solver):
    """Constant steps against the gradient, and the mean of the weights of the second half."""

    def check(self, problem):
        pass

    def _run(self, run):
        mean, w = 0.0, run.weights
        for k in range(self.max_iter):
            _, gradient = run.evaluate(w)
            w = w - 0.02 * gradient
            if 2 * k >= self.max_iter:
                mean = mean + w / (self.max_iter - self.max_iter // 2)
        run.weights = mean
        return Status.MAX_ITERATIONS


def data(n=60):
    rng = np.random.default_rng(0)
    y = [[("u", "v")[int(k)] for k in rng.integers(0, 2, 6)] for _ in range(n)]
    X = [[[label if rng.random() < 0.8 else "?"] for label in s] for s in y]
    return X, y


@pytest.mark.parametrize("samples", ["persistent", "contrastive", "inference"])
def test_training_comes_near_the_likelihoods_weights(samples):
    X, y = data()
    exact = ChainCRF(l2=1.0).fit(X, y)
    loss = StochasticLikelihood(samples, n_samples=10)
    crf = ChainCRF(loss, Steps(max_iter=300), l2=1.0).fit(X, y)
    found, best = (c.predict_marginals(X) for c in (crf, exact))
    assert np.abs(np.concatenate(found) - np.concatenate(best)).max() < 0.12


def test_adam_learns_from_samples():
    X, y = data()
    exact = ChainCRF(l2=1.0).fit(X, y)
    loss = StochasticLikelihood(n_samples=10)
    crf = ChainCRF(loss, Adam(max_iter=60, random_state=0), l2=1.0).fit(X, y)
    found, best = (c.predict_marginals(X) for c in (crf, exact))
    assert np.abs(np.concatenate(found) - np.concatenate(best)).max() < 0.12


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("chordal.features.batch.SHARD_CELLS", 60)  # many shards
    X, y = data(40)
    loss = StochasticLikelihood(n_samples=2)
    one, two = (
        ChainCRF(copy.deepcopy(loss), Steps(max_iter=10), n_jobs=k).fit(X, y) for k in (1, 2)
    )
    assert_array_equal(one.weights_, two.weights_)


def test_line_searches_refuse_it_by_name():
    X, y = data(3)
    with pytest.raises(UnsupportedError, match=r"solver 'lbfgs' .*'stochastic_likelihood'"):
        ChainCRF("stochastic_likelihood", "lbfgs").fit(X, y)
