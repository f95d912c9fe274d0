"""Solvers that pass over mini-batches: near the optimum, reproducible, loud when they diverge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import ChainCRF
from chordal._status import Status
from chordal.features import DenseInput, Occurrences, Rows
from chordal.solvers import SOLVERS
from chordal.solvers.adam import Adam
from chordal.solvers.gradient_descent import GradientDescent
from chordal.solvers.minibatch_lbfgs import MinibatchLBFGS
from chordal.solvers.stochastic_meta_descent import StochasticMetaDescent

STOCHASTIC = ["adam", "minibatch_lbfgs", "stochastic_meta_descent"]


def dense(n=200, n_labels=4, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_columns, n_labels))
    X = [rng.normal(size=(length, n_columns)) for length in rng.integers(0, 9, n)]
    y = [np.argmax(x @ truth + rng.gumbel(size=(len(x), n_labels)), axis=1) for x in X]
    return X, y


def attributes(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = [
        [{f"a{k}": 1.0 for k in rng.integers(0, 30, 3)} for _ in range(length)]
        for length in rng.integers(1, 8, n)
    ]
    return X, [[min(len(token), int(rng.integers(1, 4))) for token in x] for x in X]


def crf(solver, **options):
    return ChainCRF(solver=solver, l2=1.0, fit_intercept=True, ends=True, **options)


@pytest.mark.parametrize("data", [dense, attributes])
@pytest.mark.parametrize("solver", [Adam, MinibatchLBFGS, StochasticMetaDescent])
def test_near_the_optimum(solver, data):
    X, y = data()
    best = crf("lbfgs", tol=1e-9).fit(X, y).objective_
    model = crf(solver(batch_size=20, random_state=0, max_iter=60)).fit(X, y)
    share = 1.02 if solver is StochasticMetaDescent else 1.005
    assert best <= model.objective_ < share * best
    report = model.fit_report_
    assert report.gradient_norm >= 0.0
    assert report.n_iter == len(report.history) <= 60
    assert report.n_evaluations > 6 * report.n_iter
    assert (report.n_products > 0) == (solver is StochasticMetaDescent)
    assert_allclose(model.objective_, -model.log_likelihood(X, y).sum() + penalty(model), rtol=1e-9)


def penalty(model):
    return 0.5 * model.l2 * float(model.weights_ @ model.weights_)


@pytest.mark.parametrize("data", [dense, attributes])
@pytest.mark.parametrize("solver", STOCHASTIC)
def test_the_seed_decides_and_threads_do_not(solver, data):
    X, y = data()

    def weights(seed, n_jobs=None):
        solving = SOLVERS.get(solver)(batch_size=30, random_state=seed, max_iter=4)
        return crf(solving, n_jobs=n_jobs).fit(X, y).weights_

    first = weights(0)
    assert_array_equal(first, weights(0))
    assert_array_equal(first, weights(0, n_jobs=2))
    assert_array_equal(first, weights(0, n_jobs=3))
    assert (first != weights(1)).any()
    named = [crf(solver, random_state=3, max_iter=2).fit(X, y).weights_ for _ in range(2)]
    assert_array_equal(*named)


@pytest.mark.parametrize("objective", ["likelihood", "softmax_margin", "hinge"])
def test_adam_takes_any_objective(objective):
    X, y = dense()
    options = {"objective": objective, "random_state": 0}
    model = crf("adam", **options).fit(X, y)
    best = crf("auto", objective=objective, tol=1e-5, max_iter=3000).fit(X, y)
    assert model.objective_ < 1.05 * best.objective_
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_weights_of_sequences_follow_them_into_their_batches(solver):
    X, y = dense(60)
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    kept = SOLVERS.get(solver)(batch_size=20, random_state=0, max_iter=80)
    some = crf(kept).fit(X, y, sample_weight=weight)
    best = crf("lbfgs", tol=1e-9).fit(X[:30], y[:30])
    assert_allclose(some.objective_, best.objective_, rtol=0.01)


def test_one_batch_is_the_whole():
    X, y = dense(50)
    best = crf("lbfgs", tol=1e-10).fit(X, y)
    for solver in (Adam(batch_size=None, tol=1e-9, max_iter=5000), MinibatchLBFGS(batch_size=99)):
        solver.tol = 1e-9
        model = crf(solver).fit(X, y)
        assert_allclose(model.objective_, best.objective_, rtol=1e-6)
        assert model.fit_report_.history[-1] >= model.objective_


@pytest.mark.parametrize(
    ("solver", "advice"),
    [
        (GradientDescent(learning_rate=10.0), "use a learning_rate below 10, or scale"),
        (GradientDescent(learning_rate=0.05, momentum=0.9), "use a learning_rate below 0.05"),
        (StochasticMetaDescent(learning_rate=50.0, batch_size=20), "use a smaller learning_rate"),
        (MinibatchLBFGS(learning_rate=1e6, batch_size=20), r"use a learning_rate below 1e\+06"),
        (Adam(learning_rate=1e9, batch_size=20), r"use a learning_rate below 1e\+09"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_divergence_is_reported_with_what_to_try(solver, advice):
    X, y = dense()
    model = crf(solver)
    with pytest.raises(ValueError, match=rf"solver '{solver.name}' diverges: .*{advice}"):
        model.fit([100.0 * x for x in X], y)
    assert not hasattr(model, "weights_")


def test_gradient_descent_reaches_the_optimum():
    X, y = dense(50)
    best = crf("lbfgs", tol=1e-10).fit(X, y)
    searching = crf(GradientDescent(tol=1e-8)).fit(X, y)
    fixed = crf(GradientDescent(tol=1e-8, learning_rate=0.01, momentum=0.5)).fit(X, y)
    for model in (searching, fixed):
        assert model.fit_report_.status.succeeded
        assert_allclose(model.objective_, best.objective_, rtol=1e-6)
    assert (np.diff(searching.fit_report_.history) <= 0.0).all()


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_a_start_at_the_optimum_is_not_made_worse(solver):
    X, y = dense(60)
    model = crf("lbfgs", tol=1e-12, warm_start=True).fit(X, y)
    best, weights = model.objective_, model.weights_.copy()
    noisy = SOLVERS.get(solver)(batch_size=10, random_state=0, max_iter=10, tol=1e-12)
    model.set_params(solver=noisy).fit(X, y)
    assert model.objective_ <= best * (1 + 1e-12)  # the order of sums is another
    assert_allclose(model.weights_, weights, rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_a_callback_stops_a_run(solver):
    X, y = dense(60)
    model = crf(solver, random_state=0).fit(X, y, callback=lambda state: state.iteration == 3)
    assert model.fit_report_.status is Status.STOPPED
    assert model.n_iter_ == 3
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adam(batch_size=0), "batch_size must be an integer of at least 1"),
        (lambda: Adam(beta1=1.0), "beta1 must be below 1"),
        (lambda: Adam(learning_rate=0), "learning_rate must be a number above 0"),
        (lambda: MinibatchLBFGS(period=0), "period must be"),
        (lambda: StochasticMetaDescent(decay=1.5), "decay must be at most 1"),
        (lambda: GradientDescent(momentum=1.0, learning_rate=1.0), "momentum must be below 1"),
        (lambda: GradientDescent(momentum=0.5), "momentum needs a learning_rate"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sequences_in_another_order():
    rng = np.random.default_rng(0)
    lengths = np.array([2, 0, 3, 1])
    rows = DenseInput(2).read([rng.normal(size=(n, 2)) for n in lengths], grow=True)
    order = np.array([2, 3, 1, 0])
    assert_array_equal(rows.reordered(order).data, rows.data[[2, 3, 4, 5, 0, 1]])
    assert_array_equal(rows.reordered(order).lengths, [3, 1, 0, 2])
    occurrences = Occurrences(np.array([0, 2, 2, 3]), np.array([5, 6, 7], dtype=np.int32), None)
    taken = Rows(np.array([1, 2]), occurrences).reordered(np.array([1, 0])).data
    assert_array_equal(taken.offsets, [0, 0, 1, 3])
    assert_array_equal(taken.ids, [7, 5, 6])
    assert taken.values is None
