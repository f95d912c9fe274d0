"""How a fit goes: starting from before, watching, stopping, reporting."""

import json
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal import ChainCRF, FitReport, Status
from chordal.solvers import SOLVERS


def weights_by_name(crf):
    """All weights that have names."""
    named = {(name, label): w for name, label, w in crf.top_features(n=10**6)}
    labels = crf.classes_.tolist()
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            named["move", a, b] = crf.transitions_[i, j]
    for group, values in (("start", crf.start_), ("end", crf.end_), ("intercept", crf.intercept_)):
        named |= {(group, label): w for label, w in zip(labels, values, strict=True)}
    return named


NEW_X = [[["new=1", "w=1"], ["new=2"]], [["new=2", "s=3"], ["new=1"], ["w=0"]]]
NEW_Y = [["L1", "fresh"], ["fresh", "L0", "A"]]


# ------------------------------------------------------------------------- warm_start, partial_fit


def test_warm_start_goes_on_from_the_weights_so_far(attribute_problem):
    X, y = attribute_problem
    done = ChainCRF(tol=1e-8).fit(X, y)
    crf = ChainCRF(max_iter=3, warm_start=True).fit(X, y)
    early = crf.objective_
    for _ in range(40):
        crf.fit(X, y)
    assert early > done.objective_ + 0.1
    assert crf.objective_ == pytest.approx(done.objective_, rel=1e-4)
    assert ChainCRF(max_iter=3).fit(X, y).fit(X, y).objective_ == early  # without warm_start


@pytest.mark.parametrize(
    "parameters", [{}, {"fit_intercept": True, "ends": True}, {"pairs": "all"}]
)
def test_warm_start_meets_new_attributes_and_labels(attribute_problem, parameters):
    X, y = attribute_problem
    crf = ChainCRF(warm_start=True, **parameters).fit(X, y)
    n_before = crf.fit_report_.n_weights
    cold = ChainCRF(max_iter=1, **parameters).fit(X + NEW_X, y + NEW_Y)
    crf.set_params(max_iter=1).fit(X + NEW_X, y + NEW_Y)
    assert crf.classes_.tolist() == ["A", "L0", "L1", "L2", "L3", "fresh"]
    assert crf.fit_report_.n_weights == cold.fit_report_.n_weights > n_before
    assert crf.objective_ < 0.9 * cold.objective_
    full = {**parameters, "tol": 1e-9, "max_iter": 1000}
    crf.set_params(**full).fit(X + NEW_X, y + NEW_Y)
    from_scratch = ChainCRF(**full).fit(X + NEW_X, y + NEW_Y)
    assert crf.objective_ == pytest.approx(from_scratch.objective_, rel=1e-6)
    assert crf.predict(X + NEW_X) == from_scratch.predict(X + NEW_X)


def test_warm_start_of_arrays_meets_new_labels(dense_problem):
    X, y = dense_problem
    more = [["zz" if label == "c" else label for label in labels] for labels in y]
    crf = ChainCRF(warm_start=True, fit_intercept=True).fit(X, y).fit(X + X, y + more)
    cold = ChainCRF(fit_intercept=True).fit(X + X, y + more)
    assert crf.classes_.tolist() == ["a", "b", "c", "zz"]
    assert crf.objective_ == pytest.approx(cold.objective_, rel=1e-4)


def test_partial_fit_on_a_new_model_is_fit(attribute_problem):
    X, y = attribute_problem
    assert (ChainCRF().partial_fit(X, y).weights_ == ChainCRF().fit(X, y).weights_).all()


@pytest.mark.parametrize("pairs", ["seen", "all"])
def test_partial_fit_keeps_what_was_learned(attribute_problem, pairs):
    """New data without any old attribute, label or transition move no old weight."""
    X, y = attribute_problem
    crf = ChainCRF(pairs=pairs).fit(X, y)
    before, predicted = weights_by_name(crf), crf.predict(X)
    crf.partial_fit([[["new=1"]], [["new=2"]]] * 3, [["fresh"], ["other"]] * 3)
    after = weights_by_name(crf)
    for key, value in before.items():
        assert after[key] == pytest.approx(value, abs=1e-6), key
    assert crf.predict(X) == predicted
    assert crf.predict([[["new=1"]], [["new=2"]]]) == [["fresh"], ["other"]]


def test_partial_fit_is_pulled_towards_the_weights_so_far(attribute_problem):
    """With a large l2 it hardly moves; towards zero it would."""
    X, y = attribute_problem
    crf = ChainCRF().fit(X, y)
    before = weights_by_name(crf)
    crf.set_params(l2=1e6).partial_fit(X[:5], [["L0"] * len(t) for t in y[:5]])
    after = weights_by_name(crf)
    assert max(abs(v) for v in before.values()) > 0.5
    for key, value in before.items():
        assert after[key] == pytest.approx(value, abs=1e-3), key


def test_partial_fit_in_batches_comes_near_fit(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF()
    for begin in range(0, len(X), 10):
        crf.partial_fit(X[begin : begin + 10], y[begin : begin + 10])
    whole = ChainCRF().fit(X, y)
    assert crf.classes_.tolist() == whole.classes_.tolist()
    assert crf.log_likelihood(X, y).sum() > 1.5 * whole.log_likelihood(X, y).sum()
    assert crf.score(X, y) > whole.score(X, y) - 0.1


def test_partial_fit_takes_sample_weight(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF().fit(X, y)
    weights = crf.weights_.copy()
    crf.partial_fit(X, y, sample_weight=np.full(len(X), 1e-12))
    np.testing.assert_allclose(crf.weights_, weights, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="sample_weight is zero for every example"):
        crf.partial_fit(X, y, sample_weight=np.zeros(len(X)))


def pairs_of(x):
    return [[f"{left[0]}&{right[0]}"] for left, right in pairwise(x)]


def test_partial_fit_keeps_named_transition_features(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF(transition_features=pairs_of, l2=0.1).fit(X, y)
    likelihood, n_before = crf.log_likelihood(X, y), crf.fit_report_.n_weights
    crf.set_params(l2=1e9).partial_fit([[["new=1"], ["new=2"]]], [["fresh", "other"]])
    assert crf.fit_report_.n_weights > n_before
    # New labels take their share of each probability; among the old ones all stays.
    known = [[["L0", "L1", "L2", "L3"]] * len(x) for x in X]
    after = [
        {tuple(labels): p for labels, p in ranked}[tuple(t)]
        for ranked, t in zip(crf.k_best(X, 2000, allowed_labels=known), y, strict=True)
    ]
    np.testing.assert_allclose(after, likelihood, rtol=0, atol=1e-5)


REFUSED = """
import json
from chordal import ChainCRF

X, y = [[["a", "b"], ["c"]], [["a"], ["b"], ["c"]]], [["A", "B"], ["A", "A", "B"]]
new = [[[f"new{i}" for i in range(100_000)], ["c"]]]
cases = {
    "length": dict(y=[["Q"]]),
    "label": dict(y=[["Q", set()]]),
    "weight": dict(sample_weight=[-1.0]),
    "token": dict(X=[[*new[0], "text"]], y=[["Q", "R", "S"]]),
    "inference": dict(parameters={"inference": "none such"}),
    "solver": dict(parameters={"solver": "none such"}),
    "validation": dict(validation_data=([], [])),
}
kept = {}
for method in ("fit", "partial_fit"):
    for name, given in cases.items():
        if (method, name) == ("partial_fit", "validation"):
            continue
        arguments = {"X": new, "y": [["Q", "R"]], **given}
        crf = ChainCRF(warm_start=True).fit(X, y)
        before = [m.tolist() for m in crf.predict_marginals(X)]
        crf.set_params(**arguments.pop("parameters", {}))
        try:
            getattr(crf, method)(**arguments)
        except (ValueError, TypeError):
            crf.set_params(inference="auto", solver="lbfgs").predict(new)
            same = [m.tolist() for m in crf.predict_marginals(X)] == before
            kept[method + " " + name] = same and crf.transitions_.shape == (2, 2)
        else:
            kept[method + " " + name] = "was not refused"
print(json.dumps(kept))
"""


def test_a_refused_fit_leaves_the_model_as_it_was():
    """In a process of its own: reading past the model's tables would end this one."""
    run = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:] or f"ended by signal {-run.returncode}"
    kept = json.loads(run.stdout)
    assert kept == dict.fromkeys(kept, True)
    assert len(kept) == 13


def test_interrupted_reading_leaves_the_model_as_it_was(attribute_problem, monkeypatch):
    """Ctrl-C before the solver starts: the old weights still fit the old features."""
    X, y = attribute_problem
    crf = ChainCRF(warm_start=True).fit(X, y)
    expected = crf.predict(X)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("chordal.estimators._training.steps.compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X + NEW_X, y + NEW_Y)
    assert crf.predict(X) == expected
    assert crf.transitions_.shape == (len(crf.classes_),) * 2


# ---------------------------------------------------------------- validation, callbacks, the report


def noisy(attribute_problem):
    """Training labels with noise, so that more iterations are worse for the other half."""
    X, y = attribute_problem
    rng = np.random.default_rng(0)
    X = [[[*t, f"id={rng.integers(60)}"] for t in x] for x in X]
    y = [[f"L{rng.integers(4)}" if rng.random() < 0.4 else c for c in labels] for labels in y]
    return X[:20], y[:20], X[20:], y[20:]


def test_validation_scores_each_interval(attribute_problem):
    X, y, other_X, other_y = noisy(attribute_problem)
    weights = {}
    crf = ChainCRF(validation_interval=3, max_iter=20, l2=0.01, tol=0.0)
    crf.fit(
        X,
        y,
        validation_data=(other_X, other_y),
        callback=lambda it: weights.update({it.iteration: it.weights.copy()}),
    )
    scores = crf.fit_report_.validation
    assert [iteration for iteration, _ in scores] == [3, 6, 9, 12, 15, 18]
    for iteration, score in scores:
        other = pickle.loads(pickle.dumps(crf))
        other.weights_ = weights[iteration]
        assert score == pytest.approx(other.score(other_X, other_y), abs=1e-12)
    assert (crf.weights_ == weights[20]).all()  # without n_iter_no_change, the last are kept
    assert crf.fit_report_.status is Status.MAX_ITERATIONS


def test_early_stopping_keeps_the_best_weights(attribute_problem, listing):
    X, y, other_X, other_y = noisy(attribute_problem)
    weights = {}
    crf = ChainCRF(validation_interval=2, n_iter_no_change=3, l2=0.01, tol=0.0)
    crf.fit(
        X,
        y,
        validation_data=(other_X, other_y),
        callback=lambda it: weights.update({it.iteration: it.weights.copy()}),
    )
    report = crf.fit_report_
    best = max(score for _, score in report.validation)
    first = next(iteration for iteration, score in report.validation if score == best)
    assert report.status is Status.STOPPED
    assert report.validation[-1][1] < best
    assert crf.n_iter_ == report.validation[-1][0] == first + 2 * 3
    assert (crf.weights_ == weights[first]).all()
    assert crf.score(other_X, other_y) == pytest.approx(best, abs=1e-12)
    # The objective that is reported belongs to the weights that are kept.
    penalty = 0.5 * crf.l2 * crf.weights_ @ crf.weights_
    assert crf.objective_ == pytest.approx(penalty - crf.log_likelihood(X, y).sum(), rel=1e-9)


def test_unseen_labels_in_validation_data_are_wrong(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF(validation_interval=1, max_iter=2)
    crf.fit(X, y, validation_data=(X[:3], [["other"] * len(t) for t in y[:3]]))
    assert crf.fit_report_.validation == [(1, 0.0), (2, 0.0)]


def test_callback_sees_each_iteration_and_can_stop(attribute_problem):
    X, y = attribute_problem
    seen = []
    crf = ChainCRF(tol=0.0).fit(X, y, callback=lambda it: seen.append(it) or it.iteration == 5)
    assert [it.iteration for it in seen] == [1, 2, 3, 4, 5]
    assert [it.value for it in seen] == crf.fit_report_.history
    assert crf.n_iter_ == 5
    assert crf.fit_report_.status is Status.STOPPED
    assert not crf.fit_report_.status.succeeded
    assert (crf.weights_ == seen[-1].weights).all()
    assert all(a.elapsed <= b.elapsed for a, b in pairwise(seen))
    # Counters only: what a callback returns otherwise does not stop the run.
    assert ChainCRF(max_iter=3, tol=0.0).fit(X, y, callback=lambda _: None).n_iter_ == 3


def test_an_error_in_a_callback_is_the_users(attribute_problem):
    with pytest.raises(ZeroDivisionError):
        ChainCRF().fit(*attribute_problem, callback=lambda _: 1 / 0)


@pytest.mark.parametrize(
    ("parameters", "status"),
    [({}, Status.CONVERGED), ({"max_iter": 4, "tol": 0.0}, Status.MAX_ITERATIONS)],
)
def test_report(attribute_problem, parameters, status):
    X, y = attribute_problem
    crf = ChainCRF(**parameters).fit(X, y)
    report = crf.fit_report_
    assert isinstance(report, FitReport)
    assert report.status is status
    assert report.status.succeeded == (status is Status.CONVERGED)
    assert (report.solver, report.inference) == ("lbfgs", "chain")
    assert report.n_iter == crf.n_iter_ == len(report.history) > 0
    assert report.n_evaluations > report.n_iter
    assert report.objective == crf.objective_ == report.history[-1]
    assert all(a > b for a, b in zip(report.history, report.history[1:], strict=False))
    assert report.n_weights == len(crf.weights_)
    assert report.n_nonzero == np.count_nonzero(crf.weights_)
    assert report.gradient_norm >= 0.0
    assert 0.0 < report.elapsed < 60.0
    assert report.validation == []
    assert f"{status.value} after {report.n_iter} iterations" in str(report)
    assert f"{report.objective:.6f}" in str(report)
    with pytest.raises(AttributeError):
        report.objective = 0.0


def test_no_regularisation_stops_by_tolerance():
    """The optimum is at infinity; the run ends all the same, with finite weights."""
    crf = ChainCRF(l2=0.0).fit([[["u"], ["v"]]], [["a", "b"]])
    assert np.isfinite(crf.weights_).all()
    assert crf.objective_ < 0.01


# --------------------------------------------------------------------------------------- verbose


def test_quiet_by_default_and_where_there_is_no_terminal(attribute_problem, capfd):
    for verbose in (0, 1):
        ChainCRF(verbose=verbose, max_iter=5).fit(*attribute_problem)
    assert capfd.readouterr() == ("", "")


def test_verbose_2_prints_a_line_per_iteration_to_stderr(attribute_problem, capfd):
    X, y = attribute_problem
    crf = ChainCRF(verbose=2, max_iter=8, validation_interval=2, tol=0.0)
    crf.fit(X, y, validation_data=(X, y))
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == crf.n_iter_ == 8
    for number, line in enumerate(lines, start=1):
        assert f"iteration {number:4d}" in line
        assert f"objective {crf.fit_report_.history[number - 1]:.6f}" in line
        assert ("validation" in line) == (number % 2 == 0)


def test_verbose_2_does_not_break_long_lines(attribute_problem, capfd):
    X, y = attribute_problem
    crf = ChainCRF(verbose=2, max_iter=2, validation_interval=1, tol=0.0)
    crf.fit(X, y, validation_data=(X, y), sample_weight=np.full(len(X), 1e15))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == crf.n_iter_
    assert all("iteration" in line and "validation" in line for line in lines)


def test_verbose_1_is_quiet_outside_a_terminal(attribute_problem, capfd):
    ChainCRF(verbose=1, max_iter=5).fit(*attribute_problem)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("solver", ["sgd", "block_frank_wolfe", "passive_aggressive"])
def test_a_seed_reaches_a_solver_that_has_none(solver):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(30)]
    y = [rng.integers(0, 3, size=5) for _ in range(30)]

    def weights(given, seed):
        crf = ChainCRF(solver=given, random_state=seed)
        return crf.set_params(max_iter=3).fit(X, y).weights_

    given = SOLVERS.get(solver)(max_iter=3)
    assert_array_equal(weights(given, 0), weights(given, 0))
    assert_array_equal(weights(given, 0), weights(solver, 0))
    assert (weights(given, 0) != weights(given, 1)).any()
    assert given.random_state is None
    own = SOLVERS.get(solver)(max_iter=3, random_state=5)
    assert_array_equal(weights(own, 0), weights(own, 1))


def test_a_callback_gets_the_model_so_far_and_the_score(attribute_problem):
    X, y = attribute_problem
    seen = []

    def callback(state):
        model = state.model()
        seen.append((state.score, model.score(X[20:], y[20:]), model.predict(X)))
        assert (model.n_iter_, model.objective_) == (state.iteration, state.value)
        assert (model.weights_ == state.weights).all()

    crf = ChainCRF(max_iter=6, tol=0.0, validation_interval=2)
    crf.fit(X[:20], y[:20], validation_data=(X[20:], y[20:]), callback=callback)
    assert [np.isnan(score) for score, _, _ in seen] == [True, False] * 3
    assert all(score == found for score, found, _ in seen[1::2])
    assert seen[-1][2] == crf.predict(X)
    assert seen[0][2] != seen[-1][2]
