"""Ctrl-C during a fit: honoured at once, and the model is usable with the best weights so far.

The first press ends the fit, which returns; a second one, or one in a search, ends the program.
"""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from chordal import ChainCRF, Status
from chordal.estimators import InterruptedFitWarning, whole_fits

CHILD = """
import json, pickle, sys, time, warnings
import numpy as np
from chordal import ChainCRF

n_jobs, l1 = int(sys.argv[1]), float(sys.argv[2])
rng = np.random.default_rng(0)
X = [rng.normal(size=(40, 20)) for _ in range(4000)]
y = [rng.integers(16, size=40).tolist() for _ in X]
seen = []


def callback(state):
    seen.append((state.value, state.weights.copy()))
    print(f"iteration {state.iteration}", flush=True)


with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    crf = ChainCRF(n_jobs=n_jobs, l1=l1, l2=1e-3, tol=0.0, max_iter=10**6).fit(
        X, y, callback=callback
    )
caught = time.time()
penalty = l1 * np.abs(crf.weights_).sum() + 0.5 * crf.l2 * crf.weights_ @ crf.weights_
again = pickle.loads(pickle.dumps(crf))
best = min(seen, key=lambda s: s[0])
print()  # Ctrl-C may have cut a line
print(json.dumps({
    "caught": caught,
    "status": crf.fit_report_.status.name,
    "said": [str(w.message) for w in said],
    "n_iter": crf.n_iter_,
    "seen": len(seen),
    # The best that the callback saw, or better ones that it was still to be told of.
    "best": crf.objective_ < best[0] or bool((crf.weights_ == best[1]).all()),
    "objective": crf.objective_,
    "recomputed": penalty - float(crf.log_likelihood(X, y).sum()),
    "predicts": again.predict(X[:5]) == crf.predict(X[:5]),
    "goes on": crf.set_params(warm_start=True, max_iter=1).fit(X, y).objective_,
}))
"""


def pressed(program, lines, *arguments):
    """Run a program and press Ctrl-C after each of these lines: exit code, output, times."""
    command = [sys.executable, "-c", program, *arguments]
    times = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            for awaited in lines:
                for line in child.stdout:
                    if line.strip() == awaited:
                        break
                time.sleep(0.03)  # into the next evaluation
                times.append(time.time())
                child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=120)
        finally:
            child.kill()
    return child.returncode, out, err, times


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(("n_jobs", "l1"), [(1, 0.0), (2, 0.0), (2, 0.5)])
def test_ctrl_c(n_jobs, l1):
    code, out, err, (sent,) = pressed(CHILD, ["iteration 3"], str(n_jobs), str(l1))
    assert code == 0, err[-2000:]
    found = json.loads(out.splitlines()[-1])
    assert found["caught"] - sent < 1.0
    assert found["status"] == "INTERRUPTED"
    (said,) = found["said"]
    assert f"ended the fit after {found['n_iter']} iterations" in said
    # The last iteration may end just before the callback is told of it.
    assert 3 <= found["seen"] <= found["n_iter"] <= found["seen"] + 1
    assert found["best"]
    assert found["objective"] == pytest.approx(found["recomputed"], rel=1e-9)
    assert found["predicts"]
    assert found["goes on"] < found["objective"]


SECOND = """
import itertools
import sys
import numpy as np
from chordal import ChainCRF
from chordal.solvers.lbfgs import LBFGS

rng = np.random.default_rng(0)
X = [rng.normal(size=(40, 20)) for _ in range(2000)]
y = [rng.integers(16, size=40).tolist() for _ in X]


def told(self, oracle, start, callback, keeper, minimize=LBFGS.minimize):
    def tell(state):
        print("fit", number, "iteration", state.iteration, flush=True)
        return callback(state)

    return minimize(self, oracle, start, tell, keeper)


LBFGS.minimize = told
crf = ChainCRF(l2=1e-3, tol=0.0, max_iter=10**6)
if sys.argv[1] == "search":
    from sklearn.model_selection import cross_val_score

    number = 1
    cross_val_score(crf, X, y, cv=2, scoring=lambda *_: 0.0)
else:
    for number in itertools.count(1):
        crf.fit(X, y)
        print("went on", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("how", "lines", "went_on"),
    [
        ("loop", ["fit 1 iteration 2", "fit 2 iteration 2"], True),
        ("search", ["fit 1 iteration 2"], False),
    ],
)
def test_a_second_ctrl_c_or_one_in_a_search_stops_the_program(how, lines, went_on):
    code, _, err, _ = pressed(SECOND, lines, how)
    assert code == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert ("Ctrl-C ended the fit" in err) == went_on


def test_interrupted_where_only_whole_fits_are_of_use(dense_problem):
    X, y = dense_problem
    with whole_fits(), pytest.raises(KeyboardInterrupt):
        ChainCRF().fit(X, y, callback=interrupt_at(4))


def interrupt_at(iteration):
    def callback(state):
        if state.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("solver", ["lbfgs", "owlqn"])
def test_interrupted_in_a_callback(dense_problem, solver):
    X, y = dense_problem
    with pytest.warns(InterruptedFitWarning, match="after 4 iterations.*warm_start"):
        crf = ChainCRF(solver=solver, tol=0.0).fit(X, y, callback=interrupt_at(4))
    assert (crf.weights_ == ChainCRF(solver=solver, tol=0.0, max_iter=4).fit(X, y).weights_).all()
    assert crf.fit_report_.status is Status.INTERRUPTED
    assert crf.n_iter_ == 4
    assert len(crf.predict(X)) == len(X)


def test_interrupted_at_the_first_evaluation(dense_problem, monkeypatch):
    """Nothing was learned, but the model answers."""
    X, y = dense_problem

    def interrupted(self, weights):
        raise KeyboardInterrupt

    crf = ChainCRF()
    with monkeypatch.context() as patch:
        patch.setattr("chordal.oracle.SummedOracle.value_grad", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crf.fit(X, y)
    assert (crf.weights_ == 0.0).all()
    np.testing.assert_allclose(crf.predict_marginals(X)[0], 1 / 3, rtol=1e-12)
    assert crf.fit_report_.n_iter == 0


def test_interrupted_with_early_stopping_keeps_the_best_validated_weights(attribute_problem):
    X, y = attribute_problem
    crf = ChainCRF(validation_interval=1, n_iter_no_change=50, l2=0.01, tol=0.0)
    with pytest.warns(InterruptedFitWarning):
        crf.fit(X[:20], y[:20], validation_data=(X[20:], y[20:]), callback=interrupt_at(30))
    best = max(score for _, score in crf.fit_report_.validation)
    assert crf.score(X[20:], y[20:]) == pytest.approx(best, abs=1e-12)


def test_a_second_fit_after_an_interruption(dense_problem):
    X, y = dense_problem
    crf = ChainCRF()
    with pytest.warns(InterruptedFitWarning):
        crf.fit(X, y, callback=interrupt_at(2))
    assert (crf.fit(X, y).weights_ == ChainCRF().fit(X, y).weights_).all()
    assert crf.fit_report_.status is Status.CONVERGED
