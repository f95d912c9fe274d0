"""Solvers with a duality gap on a classifier, whose intercept has no l2, and with l2 by group."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from chordal import CRFClassifier, GraphCRF
from chordal._status import Status
from chordal.estimators._training.groups import STAND_IN

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
SOLVERS = ["one_slack", "cutting_plane", "block_frank_wolfe", "frank_wolfe"]


def objective(coef, intercept, l2):
    told = X @ coef.T + intercept + 1.0 - np.eye(3)[Y]
    loss = (told.max(axis=1) - told[np.arange(len(Y)), Y]).sum()
    return loss + 0.5 * l2 * ((coef**2).sum() + STAND_IN * (intercept**2).sum())


@pytest.mark.parametrize("name", ["hinge", "crammer_singer"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_crammer_and_singer_with_an_intercept(solver, name):
    """scikit-learn penalises the intercept by its square over that of `intercept_scaling`."""
    l2 = 5.0
    svm = LinearSVC(
        multi_class="crammer_singer", C=1 / l2, intercept_scaling=STAND_IN**-0.5, tol=1e-8,
        max_iter=10**6,
    ).fit(X, Y)  # fmt: skip
    least = objective(svm.coef_, svm.intercept_, l2)
    ours = CRFClassifier(name, solver, l2=l2, random_state=0, max_iter=200).fit(X, Y)
    assert ours.objective_ == pytest.approx(objective(ours.coef_, ours.intercept_, l2), rel=1e-9)
    assert least * (1 - 1e-4) <= ours.objective_
    assert ours.objective_ - ours.fit_report_.gap <= least * (1 + 1e-4)
    assert ours.fit_report_.status is Status.CONVERGED
    assert ours.objective_ < 1.0011 * least


@pytest.mark.parametrize("solver", ["one_slack", "cutting_plane"])
def test_l2_by_group_is_a_scale_of_features(solver):
    """Nodes with a fourth of the l2 are nodes of twice the size."""
    rng = np.random.default_rng(0)
    edges = np.array([(0, 1), (1, 2), (2, 0)])
    graphs = [(rng.normal(size=(3, 2)), edges) for _ in range(10)]
    y = [np.where(x[:, 0] > 0.3 * rng.normal(size=3), "a", "b").tolist() for x, _ in graphs]
    options = {"tol": 1e-4, "random_state": 0, "max_iter": 2000, "fit_intercept": False}
    one = GraphCRF("hinge", solver, l2={"nodes": 0.25, "edges": 1.0}, **options).fit(graphs, y)
    other = GraphCRF("hinge", solver, l2=1.0, **options).fit([(2 * x, e) for x, e in graphs], y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-3)
    assert one.fit_report_.status is Status.CONVERGED
    nodes = one.layout_.slices["nodes"]
    np.testing.assert_allclose(one.weights_[nodes], 2 * other.weights_[nodes], atol=0.1)


def test_cutting_planes_with_little_l2():
    """Where steps on one example after another would take thousands of passes."""
    plain = load_iris().data
    graphs = [(x[None], np.zeros((0, 2), dtype=int)) for x in plain]
    labels = [[label] for label in Y]
    options = {"l2": 0.01, "tol": 1e-4, "random_state": 0}
    ours = GraphCRF("hinge", "cutting_plane", max_iter=20, **options).fit(graphs, labels)
    other = GraphCRF("hinge", "one_slack", **options).fit(graphs, labels)
    assert ours.fit_report_.status is Status.CONVERGED
    assert ours.objective_ == pytest.approx(other.objective_, rel=2e-4)
