"""Input at the edge of what can be learned from: the right answer all the same."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from chordal import ChainCRF
from chordal._status import Status

X = [[["a", "b"], ["c"]], [["a"], ["b"], ["c"]]]
Y = [["A", "B"], ["A", "A", "B"]]


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn"])
@pytest.mark.parametrize("transitions", ["seen", "all"])
def test_one_label_only(solver, transitions):
    labels = [["A", "A"], ["A", "A", "A"]]
    fitted = ChainCRF(solver=solver, transitions=transitions, fit_intercept=True, ends=True).fit(
        X, labels
    )
    assert fitted.predict(X) == labels
    assert fitted.log_likelihood(X, labels).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert fitted.objective_ == pytest.approx(0.0, abs=1e-12)
    assert fitted.predict_marginals(X)[1].tolist() == [[1.0]] * 3
    assert fitted.entropy(X).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert fitted.k_best(X, 3)[0] == [(["A", "A"], 0.0)]
    assert fitted.fit_report_.status.succeeded


def test_tokens_without_attributes():
    fitted = ChainCRF(l2=0.01).fit([[[], []]] * 5, [["A", "B"]] * 5)
    assert fitted.predict([[[], []]]) == [["A", "B"]]
    assert fitted.coef_.shape == (2, 0)
    assert fitted.top_features() == []
    assert ChainCRF(transitions="none").fit([[[]]], [["A"]]).fit_report_.n_weights == 0


def best_objective(X, y, scale, l2=1.0):
    """The optimum, found in units in which no feature is large; all sequences of one length."""
    inputs, gold = np.array(X), np.array(y)
    _n, length, n_columns = inputs.shape

    def value(flat):
        coef, moves = flat[: 2 * n_columns].reshape(2, -1), flat[2 * n_columns :].reshape(2, 2)
        unary = inputs @ coef.T
        score = np.take_along_axis(unary, gold[..., None], axis=2).sum()
        score += moves[gold[:, :-1], gold[:, 1:]].sum()
        alpha = unary[:, 0]
        for t in range(1, length):
            alpha = unary[:, t] + logsumexp(alpha[:, :, None] + moves, axis=1)
        weights = np.concatenate([(coef / scale).ravel(), moves.ravel()])
        return logsumexp(alpha, axis=1).sum() - score + 0.5 * l2 * weights @ weights

    return minimize(value, np.zeros(2 * n_columns + 4), method="BFGS").fun


def scaled_problem(factor):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40, 5, 3))
    noise = rng.logistic(size=(40, 5))
    y = (inputs @ [1.0, 2.0, -1.0] + noise > 0).astype(int).tolist()
    return inputs, y, np.array([1.0, factor, 1.0])


@pytest.mark.parametrize("kind", ["dense", "dict"])
@pytest.mark.parametrize("factor", [1.0, 1e3, 1e4])
def test_a_feature_on_another_scale(kind, factor):
    """CRFsuite's line search gives up here."""
    inputs, y, scale = scaled_problem(factor)
    given = list(inputs * scale)
    if kind == "dict":
        given = [[dict(zip("abc", row, strict=True)) for row in x.tolist()] for x in given]
    fitted = ChainCRF(transitions="all", pairs="all").fit(given, y)
    assert np.isfinite(fitted.weights_).all()
    assert fitted.fit_report_.status is Status.CONVERGED
    expected = best_objective(inputs, y, scale)
    assert fitted.objective_ == pytest.approx(expected, rel=5e-3)
    assert fitted.objective_ > expected * (1 - 1e-6)
    assert fitted.score(given, y) > 0.75


@pytest.mark.parametrize("factor", [1e6, 1e8])
def test_a_feature_on_a_scale_of_millions_is_learned_from(factor):
    """However short the first step has to be, there is one."""
    inputs, y, scale = scaled_problem(factor)
    fitted = ChainCRF(transitions="all").fit(list(inputs * scale), y)
    assert fitted.n_iter_ > 0
    assert fitted.objective_ < 0.75 * 200 * np.log(2)  # 200 positions, two labels


@pytest.mark.parametrize("factor", [1e200, 1e305])
def test_features_beyond_measure_are_refused_or_fitted(factor):
    rng = np.random.default_rng(0)
    given = [factor * rng.normal(size=(4, 2)) for _ in range(3)]
    try:
        fitted = ChainCRF().fit(given, [["a", "b", "b", "a"]] * 3)
    except ValueError as error:
        assert "features are too large, scale them" in str(error)  # noqa: PT017
    else:
        assert np.isfinite(fitted.weights_).all()


TEN_MILLION = """
import gc, json, resource, time
from chordal import ChainCRF

gc.disable()
X = [[[f"{i}:{t}:{k}" for k in range(25)] for t in range(20)] for i in range(20_000)]
y = [["A", "B"] * 10] * 20_000
began = time.perf_counter()
crf = ChainCRF(max_iter=3, n_jobs=2).fit(X, y)
print(json.dumps({
    "seconds": time.perf_counter() - began,
    "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    "attributes": crf.coef_.shape[1],
    "score": crf.score(X[:100], y[:100]),
    "name": crf.top_features(1)[0][0],
}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux counts it")
def test_ten_million_attributes():
    run = subprocess.run([sys.executable, "-c", TEN_MILLION], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["attributes"] == 10_000_000
    assert found["score"] == 1.0
    assert found["name"].count(":") == 2
    assert found["gigabytes"] < 4.0
    assert found["seconds"] < 60.0
