"""Multi-label classification: beside scikit-learn, lists of all labellings and plain formulas."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier

from chordal import MultiLabelCRF, load, save

LBFGS = {"solver": "lbfgs", "tol": 1e-10}


@pytest.fixture(scope="module")
def problem():
    """Four labels, of which the second mostly goes with the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = (X @ rng.normal(size=(5, 4)) + rng.normal(size=(120, 4)) > 0.3).astype(int)
    y[:, 1] = np.where(rng.random(120) < 0.85, y[:, 0], y[:, 1])
    return X, y


def listed(model, X):
    """All labellings, and their scores by the public weights."""
    k = len(model.label_names_)
    labellings = np.array(list(itertools.product([0, 1], repeat=k)))
    scores = (X @ model.coef_.T + model.intercept_) @ labellings.T
    for (a, b), table in zip(model.edges_, model.pair_coef_, strict=True):
        scores += table[labellings[:, a], labellings[:, b]]
    return labellings, scores


def test_independent_labels_are_logistic_regressions(problem):
    X, y = problem
    model = MultiLabelCRF(structure="independent", l2=0.5, **LBFGS).fit(X, y)
    other = OneVsRestClassifier(LogisticRegression(C=2.0, tol=1e-10, max_iter=5000)).fit(X, y)
    assert_allclose(model.coef_, [own.coef_[0] for own in other.estimators_], atol=1e-5)
    assert_allclose(model.intercept_, [own.intercept_[0] for own in other.estimators_], atol=1e-5)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert_array_equal(model.predict(X), other.predict(X))
    assert model.edges_.shape == (0, 2)


@pytest.mark.parametrize("structure", ["independent", "tree", "full", [(0, 1), (3, 2)]])
@pytest.mark.parametrize("sparse", [False, True])
def test_answers_by_listing(problem, structure, sparse):
    X, y = problem
    given = csr_matrix(X) if sparse else X
    model = MultiLabelCRF(structure=structure, l2=0.3, **LBFGS).fit(given, y)
    labellings, scores = listed(model, X)
    log_z = np.logaddexp.reduce(scores, axis=1)
    chances = np.exp(scores - log_z[:, None])
    assert_array_equal(model.predict(given), labellings[scores.argmax(axis=1)])
    assert_allclose(model.predict_proba(given), chances @ labellings, atol=1e-9)
    gold = (labellings[None] == y[:, None]).all(axis=2)
    assert_allclose(model.log_likelihood(given, y), np.log(chances[gold]), atol=1e-8)
    # The objective is at its optimum: the sum of losses and penalties, without the intercepts'.
    value = -np.log(chances[gold]).sum()
    value += 0.15 * ((model.coef_**2).sum() + (model.pair_coef_**2).sum())
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    residual = (y - chances @ labellings).T @ X - 0.3 * model.coef_
    assert np.abs(residual).max() < 1e-3


def test_dense_and_sparse_rows_learn_the_same(problem):
    X, y = problem
    dense = MultiLabelCRF(structure="full", **LBFGS).fit(X, y)
    sparse = MultiLabelCRF(structure="full", **LBFGS).fit(csr_matrix(X), csr_matrix(y))
    assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(csr_matrix(X)), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_tree_has_the_most_mutual_information(problem, weighted):
    X, y = problem
    y = np.column_stack([y, y[:, 2] ^ (np.arange(120) % 7 == 0), y[:, 3]])
    weight = np.arange(120) % 3 if weighted else np.ones(120, dtype=int)
    copies = np.repeat(y, weight, axis=0)
    information = np.array([[mutual_info_score(a, b) for b in copies.T] for a in copies.T])
    tree = minimum_spanning_tree(np.triu(-information, 1)).nonzero()
    model = MultiLabelCRF(**LBFGS).fit(X, y, weight)
    assert model.edges_.tolist() == sorted(map(list, zip(*map(list, tree), strict=True)))


def test_lists_of_sets(problem):
    X, y = problem
    names = np.array(["d", "a", "c", "b"])
    sets = [set(names[own == 1]) for own in y]
    edges = [("d", "a"), ("b", "c")]
    model = MultiLabelCRF(structure=edges, **LBFGS).fit(X, sets)
    assert model.label_names_.tolist() == ["a", "b", "c", "d"]
    order = np.argsort(names)
    plain = MultiLabelCRF(structure=[(3, 0), (2, 1)], **LBFGS).fit(X, y[:, order])
    assert_array_equal(model.predict(X), plain.predict(X))
    assert model.score(X, sets) == pytest.approx(np.mean(plain.predict(X) == y[:, order]))
    with pytest.raises(ValueError, match=r"y\[1\] has the label 'z', which was not seen"):
        model.score(X[:2], [{"a"}, {"z"}])


def test_what_is_not_known_is_left_out(problem):
    X, y = problem
    partly = y.astype(object)
    partly[::3, 2] = None
    model = MultiLabelCRF(structure="independent", **LBFGS).fit(X, partly)
    seen = np.arange(120) % 3 > 0
    alone = MultiLabelCRF(structure="independent", **LBFGS).fit(X[seen], y[seen][:, [2]])
    assert_allclose(model.coef_[2], alone.coef_[0], atol=1e-4)


@pytest.mark.parametrize(
    ("objective", "solver"), [("pseudo_likelihood", "lbfgs"), ("hinge", "adam")]
)
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_other_objectives(problem, objective, solver, hidden, sparse):
    """Those that leave out what is not observed see some variables of an example only."""
    X, y = problem
    given = y.astype(object) if hidden else y
    if hidden:
        given[::2, 0] = None
        given[5] = None
    model = MultiLabelCRF(objective, solver, structure="full", random_state=0, fit_intercept=False)
    model.fit(csr_matrix(X) if sparse else X, given)
    assert (model.intercept_ == 0.0).all()
    assert model.score(X, y) > 0.8


def test_known_labels(problem):
    X, y = problem
    model = MultiLabelCRF(structure="full", prediction="map").fit(X, y)
    labellings, scores = listed(model, X)
    known = labellings[:, 1] == 1
    best = labellings[known][scores[:, known].argmax(axis=1)]
    assert_array_equal(model.predict(X, allowed_labels=[[None, 1, None, None]] * len(X)), best)
    for own in model.k_best(X[:3], 2):
        assert all(labels.shape == (4,) for labels, _ in own)


def test_files_and_copies(problem, tmp_path):
    X, y = problem
    sets = [set(np.array(["a", "b", "c", "d"])[own == 1]) for own in y]
    for rows in (X, csr_matrix(X)):
        model = MultiLabelCRF(l2=0.5).fit(rows, sets)
        save(model, tmp_path / "model")
        for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            assert_array_equal(other.predict_proba(rows), model.predict_proba(rows))
            assert other.label_names_.tolist() == list("abcd")
            assert_array_equal(other.edges_, model.edges_)
            assert other.n_features_in_ == 5
    assert clone(model).get_params() == model.get_params()


def test_it_goes_on_learning(problem):
    X, y = problem
    model = MultiLabelCRF(warm_start=True, **LBFGS).fit(X, y)
    weights, n = model.weights_.copy(), model.n_iter_
    assert model.fit(X, y).n_iter_ < n
    assert_allclose(model.weights_, weights, atol=1e-3)
    assert model.partial_fit(X[:50], y[:50]).score(X, y) > 0.8


def test_in_cross_validation(problem):
    X, y = problem
    scores = cross_val_score(MultiLabelCRF(), X, y, cv=3)
    assert scores.min() > 0.7
    assert MultiLabelCRF().fit(X, y).predict(np.zeros((0, 5))).shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, np.zeros(3), r"y must be a matrix of 0 and 1 \[n_samples, n_labels\]"),
        ({}, np.full((3, 2), 2), r"y must hold 0 and 1, got 2"),
        ({}, [set(), set(), set()], r"y has no labels: every set is empty"),
        ({}, np.zeros((2, 2)), r"X and y must have the same length, got 3 and 2"),
        ({"structure": "star"}, np.eye(3), r"structure must be .*'independent'.*got 'star'"),
        ({"structure": [(0, 5)]}, np.eye(3), r"structure\[0\] must be a pair of different labels"),
        ({"structure": [(1, 1)]}, np.eye(3), r"structure\[0\] must be a pair of different labels"),
        ({"structure": [(0, 1), (1, 0)]}, np.eye(3), r"structure\[1\] repeats the edge"),
    ],
)
def test_what_is_refused(options, y, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelCRF(**options).fit(np.eye(3), y)
