"""Online solvers through ChainCRF: what users see of them, and CRFsuite's own weights."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import ChainCRF, CliqueTemplate, Status, TemplateCRF, UnsupportedError
from chordal.objectives.hinge import Hinge
from chordal.objectives.likelihood import Likelihood
from chordal.oracle.examples import ExampleOracle
from chordal.solvers import SOLVERS
from chordal.solvers.averaged_perceptron import AveragedPerceptron
from chordal.solvers.passive_aggressive import PassiveAggressive
from chordal.solvers.sgd import SGD

ONLINE = pytest.mark.parametrize(
    "solver", [s for s in SOLVERS if SOLVERS.get(s).asks is ExampleOracle]
)


@pytest.fixture(scope="module")
def text():
    """Sixty sentences whose labels follow from words, with some noise."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(60):
        labels = rng.integers(3, size=rng.integers(1, 8))
        X.append([[f"w={3 * rng.integers(4) + k}", f"n={rng.integers(9)}"] for k in labels])
        y.append(["ABC"[k] for k in labels])
    return X, y


@ONLINE
def test_it_learns_and_reports(text, solver):
    X, y = text
    crf = ChainCRF(solver=solver, l2=0.1, random_state=0, fit_intercept=True, ends=True).fit(X, y)
    assert crf.predict(X) == y
    report = crf.fit_report_
    assert report.solver == solver
    assert report.status in (Status.CONVERGED, Status.MAX_ITERATIONS)
    assert report.n_iter == crf.n_iter_ == len(report.history) <= SOLVERS.get(solver)().max_iter
    assert report.n_evaluations >= 60 * crf.n_iter_
    assert report.objective == crf.objective_
    assert crf.objective_ in report.history
    assert "nan" not in str(report)


@ONLINE
def test_the_seed_decides(text, solver):
    weights = [
        ChainCRF(solver=solver, random_state=seed, max_iter=2, tol=0.0, n_jobs=n)
        .fit(*text)
        .weights_
        for seed, n in ((3, 1), (3, 2), (4, 1))
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


def test_sgd_comes_near_the_minimum(text):
    best = ChainCRF(l2=1.0, tol=1e-10).fit(*text)
    crf = ChainCRF(solver="sgd", l2=1.0, random_state=0).fit(*text)
    value = 0.5 * crf.weights_ @ crf.weights_ - crf.log_likelihood(*text).sum()
    assert best.objective_ <= value < 1.005 * best.objective_


def test_objectives(text):
    """The default means the solver's own; another one is a contradiction."""
    ChainCRF(solver="averaged_perceptron", max_iter=1).fit(*text)
    ChainCRF(Likelihood(), "sgd", max_iter=1).fit(*text)
    for likelihood in ("likelihood", Likelihood()):
        with pytest.raises(UnsupportedError, match=r"'arow' minimises .*'hinge', not 'likelihood'"):
            ChainCRF(likelihood, "arow").fit(*text)
    for hinge in (Hinge("chunk"), Hinge(scaling="slack")):
        with pytest.raises(UnsupportedError, match=r"'arow' has its own cost of wrong labels"):
            ChainCRF(hinge, "arow").fit(*text)
    with pytest.raises(
        UnsupportedError, match=r"'arow' .* does not support cost, scaling or class_weight"
    ):
        ChainCRF(solver="arow", class_weight="balanced").fit(*text)


@ONLINE
def test_pairs_that_cannot_work_are_refused(text, solver):
    with pytest.raises(ValueError, match=f"'{solver}' does not support l1 > 0; use 'owlqn'"):
        ChainCRF(solver=solver, l1=0.1).fit(*text)
    soft = [[{"a": 0.5, "b": 0.5}]]
    with pytest.raises(UnsupportedError, match=r"one label per"):
        ChainCRF(solver=solver).fit([[["x"]]], soft)


@ONLINE
@pytest.mark.parametrize("transitions", [None, lambda x: np.ones((max(len(x) - 1, 0), 1))])
def test_python_steps_learn_what_the_compiled_ones_do(solver, transitions):
    """With another exact inference, rules take their steps in Python."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 1, 4, 2, 3)]
    y = [list(rng.choice(list("abc"), size=len(x))) for x in X]
    settings = {"ends": True, "l2": 0.5, "max_iter": 3, "random_state": 0}
    found = [
        ChainCRF(solver=solver, inference=i, transition_features=transitions, **settings)
        .fit(X, y, sample_weight=[1.0, 2.0, 0.5, 1.0, 1.5])
        .weights_
        for i in ("chain", "exhaustive")
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


def test_defaults_are_the_solvers_own():
    assert (AveragedPerceptron().max_iter, AveragedPerceptron().tol) == (100, 1e-5)
    assert (SGD().max_iter, SGD().tol, SGD().period) == (1000, 1e-6, 10)
    X, y = [[["a"]], [["a"]]], [["A"], ["B"]]  # a contradiction: never converges
    assert ChainCRF(solver="averaged_perceptron").fit(X, y).n_iter_ == 100
    assert ChainCRF(solver=AveragedPerceptron(max_iter=7)).fit(X, y).n_iter_ == 7


@ONLINE
def test_partial_fit_goes_on(text, solver):
    X, y = text
    crf = ChainCRF(solver=solver, l2=0.1, random_state=0, max_iter=5).fit(X[:40], y[:40])
    before = {(a, b): w for a, b, w in crf.top_features(10**6)}
    crf.partial_fit([[["w=new"], ["w=1"]]], [["D", "B"]])
    assert "D" in crf.classes_.tolist()
    assert crf.predict([[["w=new"]]]) == [["D"]]
    after = {(a, b): w for a, b, w in crf.top_features(10**6)}
    untouched = [k for k in before if k[0].startswith("n=")]
    np.testing.assert_allclose([after[k] for k in untouched], [before[k] for k in untouched])
    assert np.mean(np.concatenate(crf.predict(X)) == np.concatenate(y)) > 0.9


@ONLINE
def test_sample_weight_zero_means_absent(text, solver):
    X, y = text
    wrong = [["C" if label == "A" else "A" for label in labels] for labels in y]
    crf = ChainCRF(solver=solver, l2=0.1, random_state=0, max_iter=20)
    crf.fit(X + X, y + wrong, sample_weight=[1.0] * len(X) + [0.0] * len(X))
    assert crf.predict(X) == y


@ONLINE
def test_validation_and_early_stopping(text, solver):
    X, y = text
    crf = ChainCRF(
        solver=solver, random_state=0, validation_interval=1, n_iter_no_change=2, tol=0.0
    )
    seen = []
    crf.fit(
        X[:40], y[:40], validation_data=(X[40:], y[40:]),
        callback=lambda state: seen.append(state.weights.copy()),
    )  # fmt: skip
    scores = [score for _, score in crf.fit_report_.validation]
    assert len(scores) == crf.n_iter_ < SOLVERS.get(solver)().max_iter
    np.testing.assert_array_equal(crf.weights_, seen[int(np.argmax(scores))])


@ONLINE
def test_progress_shows_no_gradient(text, solver, capsys):
    ChainCRF(solver=solver, max_iter=2, tol=0.0, verbose=2, random_state=0).fit(*text)
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2"]
    assert all("objective" in line and "nan" not in line and "‖g‖" not in line for line in lines)


@ONLINE
def test_features_that_are_too_large(solver):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) * 1e300 for _ in range(9)]
    y = [rng.integers(3, size=5).tolist() for _ in X]
    crf = ChainCRF(solver=solver, random_state=0)
    with pytest.raises(ValueError, match="scale them"):
        crf.fit(X, y)
    assert not hasattr(crf, "weights_")


@ONLINE
def test_empty_and_single_sequences(solver):
    crf = ChainCRF(solver=solver, random_state=0, max_iter=5).fit([[["a"]], []], [["A"], []])
    assert crf.predict([[["a"]], []]) == [["A"], []]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
@ONLINE
def test_ctrl_c_within_a_pass(solver):
    """A pass takes seconds; Ctrl-C ends it at once and keeps what was learned."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(200, 4)) for _ in range(2000)]
    y = [rng.integers(60, size=200).tolist() for _ in X]
    own = SOLVERS.get(solver)
    options = {"learning_rate": 0.01} if solver == "sgd" else {}
    crf = ChainCRF(
        solver=own(random_state=0, max_iter=10**6, tol=0.0, **options), transitions="all"
    )
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(3.0, press)
    timer.start()
    try:
        with pytest.warns(UserWarning, match="Ctrl-C ended the fit"):
            crf.fit(X, y)
    finally:
        timer.cancel()
    assert time.perf_counter() - pressed[0] < 2.0
    assert crf.fit_report_.status is Status.INTERRUPTED
    assert np.isfinite(crf.weights_).all()
    assert crf.weights_.any()


# Values, so that no two labellings tie later on.
ONE = (
    [
        {"a": 1.1, "b": 0.7}, {"c": 1.3}, {"a": 0.9, "d": 0.8}, {"b": 1.7, "c": 0.2}, {"e": 1.9},
        {"a": 0.31}, {"f": 0.61, "c": 1.23}, {"a": 0.77, "g": 0.47},
    ],
    ["X", "X", "X", "Y", "X", "Z", "Y", "X"],
)  # fmt: skip
TYPES = {0: "hard", 1: "linear", 2: "squared"}


def crfsuite_weights(tmp_path, algorithm, x, y, **params):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    for _ in range(3):
        trainer.append(x, y)
    trainer.select(algorithm)
    trainer.set_params(params)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()
    tagger.close()
    return dict(info.state_features), dict(info.transitions)


@pytest.mark.parametrize(
    ("algorithm", "params", "solver"),
    [
        ("ap", {"epsilon": 0}, lambda n: AveragedPerceptron(n, 0.0)),
        *(
            (
                "pa",
                {"epsilon": 0, "type": kind, "c": c, "error_sensitive": e, "averaging": a},
                lambda n, kind=kind, c=c, e=e, a=a: PassiveAggressive(
                    n, 0.0, variant=TYPES[kind], aggressiveness=c, error_sensitive=e, averaged=a
                ),
            )
            for kind, c, e, a in [(0, 1, 1, 1), (1, 1, 1, 1), (1, 0.05, 0, 1), (2, 0.2, 1, 0)]
        ),
        (
            "arow",
            {"epsilon": 0, "variance": 0.5, "gamma": 2.0},
            lambda n: SOLVERS.get("arow")(n, 0.0, variance=0.5, regularization=2.0),
        ),
        ("l2sgd", {"c2": 0.25, "delta": 0}, lambda n: SGD(n, -1.0, look_ahead=True)),
    ],
)
@pytest.mark.parametrize("passes", [1, 2, 7])
def test_crfsuites_weights(tmp_path, algorithm, params, solver, passes):
    """With equal sequences no order is left to chance: the weights must be CRFsuite's."""
    state, transitions = crfsuite_weights(
        tmp_path, algorithm, *ONE, max_iterations=passes, **params
    )
    crf = ChainCRF(solver=solver(passes), l2=0.5).fit([ONE[0]] * 3, [ONE[1]] * 3)
    assert crf.n_iter_ == passes or crf.fit_report_.status is Status.CONVERGED
    assert np.abs(crf.weights_).max() > 0.01
    ours = {(a, label): w for a, label, w in crf.top_features(10**6)}
    for key, weight in ours.items():
        assert weight == pytest.approx(state.get(key, 0.0), abs=2e-6), key
    assert set(state) <= set(ours)
    n = len(crf.classes_)
    for i, j in np.ndindex(n, n):
        key = (crf.classes_[i], crf.classes_[j])
        assert crf.transitions_[i, j] == pytest.approx(transitions.get(key, 0.0), abs=2e-6), key


def observed(x):
    return x


def observed_pairs(x):
    return x[1:]


ROWS, EACH = CliqueTemplate("rows", features=observed), CliqueTemplate("each", "each")
PAIRS, STEPS = (
    CliqueTemplate("pairs", "steps", features=observed_pairs),
    CliqueTemplate("s", "steps"),
)


def of_templates(*templates):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 5, 2, 6)]
    y = [["ab"[int(v > 0.0)] for v in x[:, 0]] for x in X]
    return TemplateCRF(templates, solver="averaged_perceptron", max_iter=5, random_state=0).fit(
        X, y
    )


@pytest.mark.parametrize("templates", [(ROWS, EACH, STEPS), (ROWS, PAIRS, STEPS)])
def test_the_order_of_templates_does_not_matter(templates):
    one, other = of_templates(*templates), of_templates(*templates[::-1])
    for template in templates:
        ours, theirs = (m.weights_[m.layout_.slices[template.name]] for m in (one, other))
        assert_array_equal(ours, theirs)


def test_two_templates_of_all_variables_as_one_with_the_columns_of_both():
    more = replace(ROWS, name="more", features=lambda x: x[:, :2] ** 2, fit_intercept=False)
    both = replace(ROWS, features=lambda x: np.column_stack([ROWS.features(x), more.features(x)]))
    apart, joined = of_templates(ROWS, PAIRS, more), of_templates(both, PAIRS)
    features = [apart.template_weights(name)["features"] for name in (ROWS.name, "more")]
    assert_allclose(
        np.concatenate(features), joined.template_weights(ROWS.name)["features"], rtol=1e-12
    )
    assert_allclose(
        apart.template_weights(PAIRS.name)["features"],
        joined.template_weights(PAIRS.name)["features"],
        rtol=1e-12,
    )


def test_chains_take_one_template_of_pairs_with_features():
    with pytest.raises(UnsupportedError, match="those of one template of pairs at most"):
        of_templates(ROWS, PAIRS, replace(PAIRS, name="more"))
