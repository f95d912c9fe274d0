"""solver="auto": what it chooses, what is refused, and that no run claims a minimum it has not."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from chordal import ChainCRF, CRFClassifier, GraphCRF, GridCRF, MatchingModel, UnsupportedError
from chordal._status import Status
from chordal.estimators._training.choosing import choose_solver
from chordal.objectives import OBJECTIVES
from chordal.oracle import Problem
from chordal.solvers import SOLVERS
from chordal.solvers.lbfgs import LBFGS
from chordal.solvers.one_slack import OneSlack

SMOOTH_ONLY = [name for name in SOLVERS if SOLVERS.get(name).needs_smooth]
KINKS = [name for name in OBJECTIVES if not OBJECTIVES.get(name).smooth]
RNG = np.random.default_rng(0)
RING = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
GRAPHS = [(RNG.normal(size=(4, 2)), RING) for _ in range(12)]
CHAINS = [x for x, _ in GRAPHS]
LABELS = [np.where(x[:, 0] + 0.3 * RNG.normal(size=4) > 0, "a", "b").tolist() for x in CHAINS]
IRIS = load_iris(return_X_y=True)


def problem(name, **facts):
    return Problem(OBJECTIVES.resolve(name), **facts)


def test_what_is_declared():
    assert set(KINKS) == {"hinge", "perceptron", "crammer_singer", "one_vs_all", "one_vs_rest"}
    assert set(SMOOTH_ONLY) == {"lbfgs", "owlqn", "gradient_descent", "minibatch_lbfgs"}


@pytest.mark.parametrize(
    ("objective", "facts", "chosen"),
    [
        ("likelihood", {}, "lbfgs"),
        ("pseudo_likelihood", {"chains": False}, "lbfgs"),
        ("stochastic_likelihood", {}, "adam"),
        ("hinge", {}, "block_frank_wolfe"),
        ("hinge", {"chains": False}, "one_slack"),
        ("hinge", {"exempt": True}, "one_slack"),
        ("hinge", {"chains": False, "n_weights": 10**7}, "block_frank_wolfe"),
        ("hinge", {"warm": True}, "one_slack"),
        ("hinge", {"l2": 0.0}, "sgd"),
        ("hinge", {"partial": True}, "adam"),
        ("perceptron", {}, "averaged_perceptron"),
    ],
)
def test_the_choice(objective, facts, chosen):
    assert choose_solver(problem(objective, **facts)) == chosen


def test_with_l1():
    assert choose_solver(problem("likelihood"), l1=1.0) == "owlqn"
    with pytest.raises(UnsupportedError, match="no solver supports l1 > 0 with objective 'hinge'"):
        choose_solver(problem("hinge"), l1=1.0)


@pytest.mark.parametrize("objective", ["hinge", "crammer_singer"])
def test_what_is_not_installed_is_not_chosen(objective, monkeypatch):
    facts = {"exempt": True, "chains": False}
    monkeypatch.setattr(OneSlack, "packages", ("scipy",))
    monkeypatch.setattr("chordal.estimators._training.choosing.installed", lambda package: False)
    assert choose_solver(problem(objective, **facts)) == "block_frank_wolfe"


@pytest.mark.parametrize("solver", SMOOTH_ONLY)
@pytest.mark.parametrize("objective", KINKS)
def test_bad_pairs_are_refused_before_reading(objective, solver):
    said = f"'{solver}' needs a smooth objective, but '{objective}' is not smooth.*'auto'"
    with pytest.raises(UnsupportedError, match=said):
        ChainCRF(objective, solver).fit(object(), object())


@pytest.mark.parametrize("objective", ["hinge", "crammer_singer", "one_vs_all", "one_vs_rest"])
def test_a_classifier_learns_by_default(objective):
    model = CRFClassifier(objective).fit(*IRIS)
    report = model.fit_report_
    assert (report.solver, report.status) == ("one_slack", Status.CONVERGED)
    assert report.gap <= 1e-3 * report.objective
    assert model.score(*IRIS) > 0.95


def test_graphs_grids_chains_and_matchings_learn_by_default():
    grids, of_grids = [x.reshape(2, 2, 2) for x in CHAINS], [np.reshape(y, (2, 2)) for y in LABELS]
    pairs = [x[:, None] - x for x in CHAINS]
    fits = {
        "one_slack": [
            GraphCRF("hinge").fit(GRAPHS, LABELS),
            GridCRF("hinge").fit(grids, of_grids),
        ],
        "block_frank_wolfe": [ChainCRF("hinge").fit(CHAINS, LABELS)],
        "frank_wolfe": [MatchingModel(tol=0.05).fit(pairs, [range(4)] * len(pairs))],
        "lbfgs": [GraphCRF().fit(GRAPHS, LABELS)],
        "adam": [GraphCRF("stochastic_likelihood", max_iter=2).fit(GRAPHS, LABELS)],
    }
    for solver, models in fits.items():
        assert [model.fit_report_.solver for model in models] == [solver] * len(models)
    for model in fits["one_slack"] + fits["block_frank_wolfe"]:
        assert model.fit_report_.status is Status.CONVERGED
        zeros = sum(map(len, CHAINS))  # the hinge of weights of zero: every label is wrong
        assert model.objective_ < 0.8 * zeros
    again = ChainCRF("hinge").fit(CHAINS, LABELS)
    assert (again.weights_ == fits["block_frank_wolfe"][0].weights_).all()


class HingeOfIris:
    """Crammer and Singer's hinge with l2 = 1, written down here; no solver would be given it."""

    n_weights = 12

    def value_grad(self, weights):
        (X, y), W, rows = IRIS, weights.reshape(4, 3), np.arange(150)
        told = X @ W + 1.0 - np.eye(3)[y]
        best, parts = told.argmax(axis=1), np.zeros((150, 3))
        np.add.at(parts, (rows, best), 1.0)
        parts[rows, y] -= 1.0
        loss = (told[rows, best] - told[rows, y]).sum()
        return float(loss) + 0.5 * float(weights @ weights), (X.T @ parts + W).ravel()


def test_lbfgs_on_the_hinge_does_not_claim_to_have_converged():
    solution = LBFGS().minimize(HingeOfIris(), np.zeros(12))
    best = CRFClassifier("crammer_singer", "frank_wolfe", fit_intercept=False, tol=0.02).fit(*IRIS)
    assert solution.value > 1.1 * best.objective_
    assert not solution.status.succeeded


@pytest.mark.parametrize("scale", [[1e4] * 4, [1e4, 1, 1, 1], [1e4, 1, 1e-3, 1]])
@pytest.mark.parametrize("solver", ["lbfgs", "newton_cg", "gradient_descent"])
def test_badly_scaled_features(solver, scale):
    """Beside Newton's method on columns that are scaled by hand, with the l2 that this takes."""
    X, y = IRIS[0] * scale, IRIS[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CRFClassifier(solver=solver, l2=0.01).fit(X, y)
    size = np.sqrt((X**2).mean(axis=0))
    groups = [f"f{k}" for k in range(4)]
    from chordal import CliqueTemplate, TemplateCRF

    columns = [
        CliqueTemplate(name, features=lambda x, k=k: x[:, [k]], fit_intercept=False)
        for k, name in enumerate(groups)
    ]
    intercept = CliqueTemplate("one", features=lambda x: np.ones((len(x), 1)), fit_intercept=False)
    l2 = dict(zip(groups, 0.01 / size**2, strict=True)) | {"one": 0.0}
    best = TemplateCRF([*columns, intercept], solver="newton", l2=l2, tol=1e-9)
    best.fit([x[None] / size for x in X], [[label] for label in y])
    assert model.objective_ == pytest.approx(best.objective_, rel=0.04)
    if model.fit_report_.status is Status.CONVERGED:
        assert model.objective_ == pytest.approx(best.objective_, rel=0.01)
    else:  # it takes small steps where the objective is flat, and says so
        assert model.fit_report_.status in (Status.SETTLED, Status.MAX_ITERATIONS)
        assert solver != "newton_cg"


def test_a_run_that_settles_says_so():
    with pytest.warns(UserWarning, match="did not converge.*nothing shows"):
        model = CRFClassifier("hinge", "adam", random_state=0).fit(*IRIS)
    assert model.fit_report_.status is Status.SETTLED
    assert not Status.SETTLED.succeeded
