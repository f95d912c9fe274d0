"""Stochastic gradient descent: its schedules, objectives, means and limits."""

from contextlib import contextmanager
from functools import cache
from math import inf, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.costs import Cost
from chordal.objectives.hinge import Hinge
from chordal.objectives.piecewise import Piecewise
from chordal.objectives.softmax_margin import SoftmaxMargin
from chordal.oracle.rules.gradient import GradientRule
from chordal.solvers.sgd import SGD, STEP_SCHEDULES, StepSchedule
from chordal.testing.contracts.online import single_examples


@pytest.fixture(scope="module")
def text():
    """Sixty sentences whose labels follow from words, with some noise."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        labels = rng.integers(3, size=rng.integers(1, 8))
        X.append([[f"w={3 * rng.integers(4) + k}", f"n={rng.integers(9)}"] for k in labels])
        y.append(["ABC"[k if rng.random() < 0.9 else 0] for k in labels])
    return X, y


# ---------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("name", "rate", "size"),
    [
        ("inverse_sqrt", None, lambda k: 0.1 / (1 + sqrt(k))),
        ("inverse", None, lambda k: 1 / (1 + 0.05 * k)),
        ("inverse", 3.0, lambda k: 3 / (1 + 0.05 * k)),
        ("constant", 0.2, lambda k: 0.2),
        ("pegasos", None, lambda k: 1 / (0.03 * k)),
        ("bottou", 0.4, lambda k: 0.4 / (1 + 0.03 * 0.4 * (k - 1))),
    ],
)
def test_sizes_of_steps(name, rate, size):
    rule = STEP_SCHEDULES[name].rule(decay=0.03, rate=rate)
    for k in (1, 2, 3, 50, 5000):
        assert rule.rate(k - 1) == pytest.approx(size(k), rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "inverted"}, "schedule must be one of 'bottou', 'pegasos', 'constant'"),
        ({"schedule": "pegasos", "learning_rate": 0.5}, "does not use learning_rate"),
        ({"momentum": 1.0}, "momentum must be below 1"),
        ({"momentum": -0.1}, "momentum must be a number of at least 0"),
        ({"momentum": 0.5, "projection": True}, "projection and momentum"),
        ({"average_after": -1}, "average_after must be a number of at least 0"),
        ({"max_steps": 0}, "max_steps must be an integer of at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SGD(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 0.0}, "rate must be a number above 0"),
        ({"rate": inf, "slope": 1.0}, "rate must be a number above 0"),
        ({"slope": -1.0}, "slope must be a number of at least 0"),
        ({"power": 0.0}, "power must be a number above 0"),
        ({"first": 2}, "first must be 0 or 1"),
    ],
)
def test_wrong_schedules_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        StepSchedule(**settings)


def test_a_schedule_that_needs_regularisation(text):
    with pytest.raises(ValueError, match="needs l2 > 0"):
        ChainCRF("hinge", SGD(schedule="pegasos"), l2=0.0).fit(*text)
    with pytest.raises(UnsupportedError, match="projection needs l2 > 0"):
        ChainCRF("hinge", SGD(projection=True), l2=0.0).fit(*text)


# --------------------------------------------------------------------------- the assignment's words


def logistic_by_hand(X, y, rate, decay, steps):
    """w ← w − α_k (∇ −log p(y | x) + λ w), two classes, one example after another."""
    w = np.zeros((2, X.shape[1]))
    for k in range(1, steps + 1):
        x, label = X[(k - 1) % len(X)], y[(k - 1) % len(X)]
        chances = np.exp(w @ x)
        slope = np.outer(chances / chances.sum() - (np.arange(2) == label), x)
        w = w - rate(k) * (slope + decay * w)
    return w


@pytest.mark.parametrize(("name", "decay"), [("inverse_sqrt", 0.0), ("inverse", 0.3)])
def test_single_examples_in_their_own_order(name, decay):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(7, 3))
    y = (X @ [1.0, -2.0, 0.5] + rng.normal(size=7) > 0).astype(int)
    solver = SGD(
        max_iter=100, tol=-1.0, schedule=name, shuffle=False, max_steps=45, keep_best=False
    )
    crf = ChainCRF(solver=solver, l2=decay * 7).fit([x[None] for x in X], [[k] for k in y])
    expected = logistic_by_hand(X, y, STEP_SCHEDULES[name].size, decay, 45)
    np.testing.assert_allclose(crf.coef_, expected, rtol=1e-10)
    assert crf.n_iter_ == 7  # the last pass is not a whole one
    assert crf.fit_report_.n_evaluations == 45 + 7  # and a look at the start


def test_passes_of_the_datas_order_do_not_depend_on_the_seed(text):
    def learned(seed, shuffle):
        solver = SGD(max_iter=2, tol=-1.0, shuffle=shuffle, random_state=seed)
        return ChainCRF(solver=solver).fit(*text).weights_

    np.testing.assert_array_equal(learned(0, False), learned(1, False))
    assert (learned(0, True) != learned(1, True)).any()


# ------------------------------------------------------------------------------------ what it finds


@cache
def lowest(temperature, cost):
    """The minimum: by L-BFGS, or with slacks ξ_n ≥ score(y) + cost(y) − score(gold) for all y."""
    oracle = noisy(temperature, cost)
    if temperature:
        return minimize(oracle.value_and_gradient, np.zeros(6), jac=True, tol=1e-12).fun
    n = oracle.n_examples
    slope = [e.features - e.gold for e in oracle.examples]
    A = np.hstack([-np.concatenate(slope), np.repeat(np.eye(n), 3, axis=0)])
    bounds = np.concatenate([e.cost for e in oracle.examples])
    weight = np.concatenate([np.full(6, oracle.l2), np.zeros(n)])
    linear = np.concatenate([np.zeros(6), np.ones(n)])
    found = minimize(
        lambda v: (0.5 * weight @ (v * v) + linear @ v, weight * v + linear),
        np.concatenate([np.zeros(6), np.ones(n)]),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - bounds, "jac": lambda v: A},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    return found.fun


def noisy(temperature, cost):
    oracle = single_examples(noise=6, temperature=temperature, cost=cost)
    oracle.l2 = 4.0
    return oracle


@pytest.mark.parametrize(
    "settings",
    [
        {"average_after": 1.5},
        {"momentum": 0.5, "average_after": 5},
        {"schedule": "pegasos", "average_after": 10},
        {"schedule": "pegasos", "projection": True, "average_after": 10},
        {"schedule": "inverse_sqrt", "average_after": 10},
        {"schedule": "inverse_sqrt", "momentum": 0.5, "look_ahead": True, "average_after": 10},
    ],
)
@pytest.mark.parametrize(("temperature", "cost"), [(1, 0.0), (1, 1.0), (0, 1.0)])
def test_the_minimum(settings, temperature, cost):
    oracle = noisy(temperature, cost)
    solver = SGD(max_iter=60, tol=-1.0, random_state=0, **settings)
    found = oracle.value_and_gradient(solver.minimize(oracle, np.zeros(6)).weights)[0]
    best = lowest(temperature, cost)
    assert best * (1 - 1e-9) <= found < best * 1.02


def test_softmax_margin_is_the_batch_solvers(text):
    batch = ChainCRF("softmax_margin", l2=1.0, tol=1e-10).fit(*text)
    solver = SGD(max_iter=60, tol=-1.0, average_after=5, random_state=0)
    crf = ChainCRF("softmax_margin", solver, l2=1.0).fit(*text)
    np.testing.assert_allclose(crf.weights_, batch.weights_, atol=0.05)
    assert abs(batch.weights_).max() > 1.0


def test_objectives_by_name(text):
    weights = {
        name: ChainCRF(name, "sgd", max_iter=5, tol=0.0, random_state=0).fit(*text).weights_
        for name in ("likelihood", "softmax_margin", "hinge", "perceptron")
    }
    assert len({w.tobytes() for w in weights.values()}) == 4


def test_a_mean_is_nearer_than_the_last_weights(text):
    best = ChainCRF(l2=1.0, tol=1e-10).fit(*text)

    def distance(**settings):
        solver = SGD(
            max_iter=40, tol=-1.0, random_state=0, learning_rate=0.2, keep_best=False,
            schedule="constant", **settings,
        )  # fmt: skip
        return np.linalg.norm(ChainCRF(solver=solver, l2=1.0).fit(*text).weights_ - best.weights_)

    assert distance(average_after=10) < 0.7 * distance()


def test_the_ball_holds_the_minimum():
    """Its radius is √(L(0)/λ): for the likelihood of three labels, √(log 3 / λ)."""
    oracle, radii = single_examples(), []
    learner = oracle.learner

    def watched(rule, start):
        radii.append(rule.radius)
        return learner(rule, start)

    oracle.learner = watched
    SGD(max_iter=1, projection=True, schedule="pegasos").minimize(oracle, np.ones(6))
    assert radii[0] == inf  # the loss at zero is looked at first
    np.testing.assert_allclose(radii[1:], sqrt(np.log(3.0) / (0.5 / 30)), rtol=1e-12)


def test_the_best_pass_or_the_last():
    settings = {"max_iter": 30, "tol": -1.0, "random_state": 0, "learning_rate": 0.5}
    oracle, seen = single_examples(noise=6), []

    def note(state):
        seen.append((state.value, state.weights.copy()))

    best = SGD(schedule="constant", **settings).minimize(oracle, np.zeros(6), note)
    last = SGD(schedule="constant", keep_best=False, **settings).minimize(oracle, np.zeros(6))
    assert best.value == min(value for value, _ in seen) < last.value
    np.testing.assert_array_equal(last.weights, seen[-1][1])
    np.testing.assert_array_equal(best.weights, min(seen, key=lambda s: s[0])[1])


# -------------------------------------------------------------------------------- what it cannot do


def test_steps_that_are_too_large_are_reported():
    oracle = single_examples(noise=6)
    solver = SGD(max_iter=3, learning_rate=1e4, schedule="constant", random_state=0)
    oracle.l2 = 0.0
    with pytest.warns(RuntimeWarning, match=r"'sgd' diverges: the objective is .* learning_rate"):
        assert np.isfinite(solver.minimize(oracle, np.zeros(6)).weights).all()


def test_a_perceptron_that_starts_at_its_lowest_does_not_diverge(text):
    """At zero weights its loss is 0, which all later ones exceed: no warning (an error here)."""
    solver = SGD(max_iter=5, tol=-1.0, learning_rate=1.0, schedule="constant", keep_best=False)
    crf = ChainCRF("perceptron", solver, l2=0.0, random_state=0).fit(*text)
    assert max(crf.fit_report_.history) > 0.0


def test_a_perceptron_that_diverges_is_reported(text):
    """ηλ = 2.5: each step makes the weights half as large again, and turns them round."""
    solver = SGD(max_iter=8, tol=-1e300, learning_rate=2.5 * len(text[0]), schedule="constant")
    crf = ChainCRF("perceptron", solver, l2=1.0, random_state=0)
    with pytest.warns(RuntimeWarning, match=r"'sgd' diverges: .* in the first pass; lower"):
        crf.fit(*text)
    assert crf.fit_report_.history[-1] > 1e6 * crf.fit_report_.history[0]


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"average_after": 0}])
def test_growing_weights_never_become_nan(text, settings):
    """ηλ > 2: every step takes the weights further away."""
    solver = SGD(max_iter=100, learning_rate=10.0, schedule="constant", **settings)
    crf = ChainCRF(solver=solver, l2=60.0)
    with pytest.raises(ValueError, match=r"'sgd' diverges.*scale them; or lower learning_rate"):
        crf.fit(*text)
    assert not hasattr(crf, "weights_")


class OfPairs(Cost):
    """Wrong pairs of labels cost one."""

    def add(self, potentials, labels):
        return potentials.like(potentials.unary, potentials.tables + 1.0)


class OfLength(Cost):
    """Costs grow with the square of the length."""

    def add(self, potentials, labels):
        sizes = np.diff(potentials.structure.variable_offsets)
        counts = potentials.structure.label_counts
        potentials.unary += np.repeat(np.repeat(sizes, sizes), counts)
        return potentials


@pytest.mark.parametrize(
    "objective", [Hinge(OfPairs()), SoftmaxMargin(OfLength()), Hinge(scaling="slack"), Piecewise()]
)
def test_what_is_not_compiled_is_learned_in_python(text, objective):
    X, y = text[0][:8], text[1][:8]
    solver = SGD(max_iter=3, learning_rate=0.1, random_state=0, tol=0.0)
    crf = ChainCRF(objective, solver, l2=0.1).fit(X, y)
    history = crf.fit_report_.history
    assert history[-1] < history[0]


def test_ctrl_c_keeps_the_mean_so_far():
    oracle = single_examples(noise=6, interrupt_at=200)
    solver = SGD(max_iter=10**6, tol=-1.0, learning_rate=0.1, average_after=0, random_state=0)
    solution = solver.minimize(oracle, np.zeros(6))
    assert solution.status is Status.INTERRUPTED
    oracle.interrupt_at, oracle.n_visits = None, 0
    rng, learner = np.random.default_rng(0), None
    rule = GradientRule(0.5 / 36, 10.0, 0.5 / 36, first=0.0, average_after=0.0)
    learner, left = oracle.learner(rule, np.zeros(6)), 199 - 36
    while left > 0:
        learner.visit(rng.permutation(36)[:left])
        left -= 36
    np.testing.assert_allclose(solution.weights, learner.weights(), rtol=1e-12)


# ----------------------------------------------------------------------------------- extreme values


@contextmanager
def suppress_matching(message):
    """Only a ValueError that says this is no failure."""
    try:
        yield
    except ValueError as error:
        if message not in str(error):
            raise


@pytest.mark.parametrize("objective", ["likelihood", "softmax_margin", "hinge", "perceptron"])
@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_features_of_any_size(objective, scale):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) * scale for _ in range(9)]
    y = [rng.integers(3, size=4).tolist() for _ in X]
    solver = SGD(max_iter=5, random_state=0, momentum=0.5, average_after=1)
    crf = ChainCRF(objective, solver, l2=1e-3)
    reported = "scale them" if scale > 1.0 else "never"
    with suppress_matching(reported):
        crf.fit(X, y)
        assert np.isfinite(crf.weights_).all()
        assert np.isfinite(crf.objective_)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore:solver 'sgd'")
def test_features_of_any_size_never_converge_away_from_the_minimum(seed):
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(6, 4)) * 1e4 for _ in range(10)]
    y = [rng.integers(0, 3, 6).tolist() for _ in X]
    best = ChainCRF(solver="newton").fit(X, y).objective_
    crf = ChainCRF(solver="sgd", random_state=seed).fit(X, y)
    assert crf.fit_report_.status is not Status.CONVERGED or crf.objective_ < 1.01 * best
