"""Models of clique templates: beside ChainCRF, beside brute force, and what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from chordal import ChainCRF, CliqueTemplate, GraphCRF, GridCRF, TemplateCRF, UnsupportedError
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives.hinge import Hinge


def identity(x):
    return x


def steps(x):
    return np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1)


CHAIN = [CliqueTemplate("nodes", features=identity), CliqueTemplate("steps", steps)]
TRIANGLE = [(0, 1), (1, 2), (0, 2)]


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 4)) for n in (5, 4, 6, 3, 1, 7, 8)]
    W = rng.normal(size=(4, 3))
    y = [np.array(list("abc"))[(x @ W + rng.normal(size=(len(x), 3))).argmax(1)] for x in X]
    return X, y, rng.uniform(0.5, 2.0, len(X))


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(1)
    X, y = [], []
    for n in (3, 4, 5, 3, 6):
        edges = [(i, (i + 1) % n) for i in range(n)] + ([(0, 2)] if n > 3 else [])
        labels = rng.integers(0, 2, n)
        nodes = np.stack([labels + rng.normal(size=n), rng.normal(size=n)], axis=1)
        X.append((nodes, np.array(edges), rng.normal(size=(len(edges), 2))))
        y.append(labels)
    return X, y


SOLVERS = [
    ("likelihood", "lbfgs", {"tol": 1e-10}, 1e-6),
    ("likelihood", "newton", {}, 1e-6),
    ("likelihood", "adam", {"max_iter": 20}, 1e-10),
    ("pseudo_likelihood", "lbfgs", {"tol": 1e-10}, 1e-6),
    ("softmax_margin", "lbfgs", {"tol": 1e-10}, 1e-6),
    ("likelihood", "sgd", {"max_iter": 5}, 1e-10),
    ("hinge", "sgd", {"max_iter": 5}, 1e-10),
    ("auto", "averaged_perceptron", {"max_iter": 3}, 1e-10),
    ("auto", "passive_aggressive", {"max_iter": 3}, 1e-10),
    ("auto", "arow", {"max_iter": 3}, 1e-10),
    ("hinge", "one_slack", {}, 1e-6),
    ("hinge", "cutting_plane", {"tol": 1e-8}, 1e-6),
]


@pytest.mark.parametrize(("objective", "solver", "settings", "atol"), SOLVERS)
def test_a_chain_of_templates_learns_what_chain_crf_learns(
    sequences, objective, solver, settings, atol
):
    X, y, weight = sequences
    settings = {"l2": 0.5, "random_state": 0} | settings
    chain = ChainCRF(objective, solver, transitions="all", fit_intercept=True, **settings)
    chain.fit(X, y, sample_weight=weight)
    crf = TemplateCRF(CHAIN, objective, solver, **settings).fit(X, y, sample_weight=weight)
    assert crf.inference_.name == "chain"
    assert crf.fit_report_.exact
    assert_allclose(crf.template_weights("nodes")["features"].T, chain.coef_, atol=atol, rtol=0)
    assert_allclose(
        crf.template_weights("steps")["intercept"], chain.transitions_, atol=atol, rtol=0
    )
    # Labellings may tie at the optimum: what is predicted is as good, if not the same.
    best, found = chain.log_likelihood(X, chain.predict(X)), chain.log_likelihood(X, crf.predict(X))
    assert_allclose(found, best, atol=20 * atol, rtol=0)


def test_answers_are_those_of_chain_crf(sequences):
    X, y, _ = sequences
    chain = ChainCRF(transitions="all", fit_intercept=True, tol=1e-10).fit(X, y)
    crf = TemplateCRF(CHAIN, tol=1e-10, random_state=0).fit(X, y)
    assert_allclose(crf.log_likelihood(X, y), chain.log_likelihood(X, y), atol=1e-6)
    for a, b in zip(crf.predict_marginals(X), chain.predict_marginals(X), strict=True):
        assert_allclose(a, b, atol=1e-6)
    for a, b in zip(crf.k_best(X, 3), chain.k_best(X, 3), strict=True):
        assert_allclose([p for _, p in a], [p for _, p in b], atol=1e-6)
        assert all((u == v).all() for (u, _), (v, _) in zip(a, b, strict=True))
    drawn = crf.sample(X[:1], 3)
    assert [len(labels) for labels in drawn[0]] == [5, 5, 5]
    assert crf.predict(X[:2], method="mpm")[0].shape == (5,)


def test_frank_wolfe_closes_in_on_the_optimum(sequences):
    X, y, weight = sequences
    best = TemplateCRF(CHAIN, "hinge", "one_slack", l2=2.0, tol=1e-6).fit(
        X, y, sample_weight=weight
    )
    crf = TemplateCRF(CHAIN, "hinge", "block_frank_wolfe", l2=2.0, tol=1e-2, random_state=0)
    crf.fit(X, y, sample_weight=weight)
    report = crf.fit_report_
    assert report.status.succeeded
    assert best.objective_ <= report.objective * (1 + 1e-6)
    assert report.objective - report.gap <= best.objective_ * (1 + 1e-6)


def test_threads_change_nothing(graphs):
    X, y = graphs
    one, two = (GraphCRF(tables="full", n_jobs=n).fit(5 * X, 5 * y).weights_ for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.parametrize("tables", ["symmetric", "full", "potts"])
def test_graphs_with_edge_features_beside_brute_force(graphs, tables):
    X, y = graphs
    crf = GraphCRF(tables=tables, l2=0.3, tol=1e-9).fit(X, y)
    brute = clone(crf).set_params(inference=ExhaustiveInference()).fit(X, y)
    assert crf.inference_.name == "junction_tree"
    assert crf.fit_report_.exact
    assert_allclose(crf.weights_, brute.weights_, atol=1e-5)
    assert_allclose(crf.log_likelihood(X, y), brute.log_likelihood(X, y), atol=1e-5)
    assert crf.pair_coef_.shape == (2, 2, 2)
    assert crf.coef_.shape == (2, 2)
    if tables != "full":
        assert_allclose(crf.pair_coef_, crf.pair_coef_.swapaxes(1, 2))
        turned = [(nodes, edges[:, ::-1], seen) for nodes, edges, seen in X]
        assert_allclose(crf.log_likelihood(turned, y), crf.log_likelihood(X, y), atol=1e-9)
    if tables == "potts":
        assert not crf.pair_intercept_[0, 1]
        assert crf.pair_intercept_[0, 0] == crf.pair_intercept_[1, 1]


def test_what_is_not_exact_says_so(graphs):
    X, y = graphs
    crf = GraphCRF(inference="loopy_bp").fit(X, y)
    assert not crf.fit_report_.exact
    assert "'loopy_bp' is approximate" in str(crf.fit_report_)
    assert GraphCRF("pseudo_likelihood", inference="loopy_bp").fit(X, y).fit_report_.exact


@pytest.mark.parametrize("objective", ["piecewise", "stochastic_likelihood", Hinge(relaxed=True)])
def test_other_objectives_learn_on_graphs(graphs, objective):
    X, y = graphs
    solver = {"piecewise": "newton", "stochastic_likelihood": "adam"}.get(objective, "one_slack")
    crf = GraphCRF(objective, solver, random_state=0).fit(4 * X, 4 * y)
    assert crf.score(X, y) > 0.6
    assert np.isfinite(crf.weights_).all()


def test_triplets_learn_what_pairs_cannot():
    """The label is 1 where the two before it differ."""
    rng = np.random.default_rng(0)
    y = []
    for _ in range(30):
        labels = list(rng.integers(0, 2, 2))
        for _ in range(6):
            labels.append(int(labels[-1] != labels[-2]))
        y.append(labels)
    X = [np.stack([np.where(np.arange(8) < 2, 2 * np.array(s) - 1.0, 0.0)], 1) for s in y]
    triples = CliqueTemplate(
        "triples", lambda x: np.arange(len(x) - 2)[:, None] + np.arange(3), order=3
    )
    pairs = TemplateCRF(CHAIN, l2=0.1).fit(X, y).score(X, y)
    crf = TemplateCRF([*CHAIN, triples], l2=0.1).fit(X, y)
    assert crf.score(X, y) == 1.0 > pairs
    bias = crf.template_weights("triples")["intercept"]
    assert bias[0, 1, 1] > bias[0, 1, 0]


def test_attributes_and_cliques_that_some_examples_lack():
    X = [["the", "cat", "the"], ["a"], ["a", "dog"]]
    y = [["D", "N", "D"], ["D"], ["D", "N"]]
    templates = [
        CliqueTemplate("words", features=lambda x: [[w] for w in x]),
        CliqueTemplate(
            "skip",
            lambda x: [(i, j) for j in range(len(x)) for i in range(j) if x[i] == x[j]],
            lambda x: [{f"same={x[0]}": 1.0}] * int(len(set(x)) < len(x)),
            tables="potts",
        ),
    ]
    crf = TemplateCRF(templates).fit(X, y)
    assert crf.predict(X) == y
    assert crf.predict([["a", "cat", "a", "zebra"]])[0][:3] == ["D", "N", "D"]
    more = clone(crf).set_params(warm_start=True).fit(X, y)
    before = more.objective_
    more.fit([*X, ["dog", "sleeps"]], [*y, ["N", "V"]])
    assert set(more.classes_) == {"D", "N", "V"}
    assert more.predict([["dog", "sleeps"]]) == [["N", "V"]]
    assert before > 0


def test_warm_start_and_freeze_by_template(graphs):
    X, y = graphs
    crf = GraphCRF(tables="full", warm_start=True, tol=1e-8).fit(X, y)
    first = crf.weights_.copy()
    assert crf.fit(X, y).n_iter_ <= 2
    assert_allclose(crf.weights_, first, atol=1e-3)
    first = crf.weights_.copy()
    crf.set_params(freeze=("nodes",), l2={"edges": 0.01}).fit(X, y)
    nodes = crf.layout_.slices["nodes"]
    assert_array_equal(crf.weights_[nodes], first[nodes])
    assert (crf.weights_[crf.layout_.slices["edges"]] != 0).all()
    with pytest.raises(
        ValueError, match="group of weights, 'node'; the groups are: 'nodes', 'edges'"
    ):
        crf.set_params(freeze=("node",)).fit(X, y)


@pytest.mark.parametrize("objective", ["likelihood", "pseudo_likelihood", "hinge"])
def test_variables_that_are_not_observed(graphs, objective):
    X, y = graphs
    hidden = [labels.copy() for labels in y]
    hidden[1][0] = hidden[2][3] = -1
    solver = "one_slack" if objective == "hinge" else "lbfgs"
    crf = GraphCRF(objective, solver, ignore_label=-1).fit(X, hidden)
    assert list(crf.classes_) == [0, 1]
    as_none = [[None if v == -1 else int(v) for v in labels] for labels in hidden]
    again = GraphCRF(objective, solver).fit(X, as_none)
    assert_allclose(again.weights_, crf.weights_, atol=1e-9)
    whole, seen = np.concatenate(y), np.concatenate(hidden) >= 0
    right = np.concatenate(crf.predict(X)) == whole
    assert crf.score(X, hidden) == right[seen].mean()
    if objective != "likelihood":  # the graph without them
        x = list(X[1])
        keep = (x[1] > 0).all(axis=1)
        X2 = [X[0], (x[0][1:], x[1][keep] - 1, x[2][keep]), *X[3:]]
        alone = GraphCRF(objective, solver).fit(X2, [y[0], y[1][1:], *y[3:]])
        dropped = GraphCRF(objective, solver, ignore_label=-1).fit(
            [X[0], X[1], *X[3:]], [y[0], hidden[1], *y[3:]]
        )
        assert_allclose(alone.weights_, dropped.weights_, atol=1e-9)


def test_scikit_learns_protocol(graphs):
    X, y = graphs
    crf = GraphCRF(l2=0.5, tables="potts")
    assert repr(crf) == "GraphCRF(l2=0.5, tables='potts')"
    assert clone(crf).get_params() == crf.get_params()
    with pytest.raises(NotFittedError, match="GraphCRF instance is not fitted"):
        crf.predict(X)
    crf.fit(X, y)
    again = pickle.loads(pickle.dumps(crf))
    assert_array_equal(again.weights_, crf.weights_)
    assert_array_equal(np.concatenate(again.predict(X)), np.concatenate(crf.predict(X)))
    grid = GridCRF(contrast="auto", directions=True)
    images = [np.random.default_rng(0).normal(size=(3, 4, 2))]
    grid.fit(images, [np.arange(12).reshape(3, 4) % 2])
    assert_array_equal(pickle.loads(pickle.dumps(grid)).predict(images)[0], grid.predict(images)[0])
    assert clone(TemplateCRF(CHAIN)).templates == CHAIN


def test_validation_stops_early(graphs):
    X, y = graphs
    seen = []
    crf = GraphCRF(validation_interval=1, n_iter_no_change=2, l2=1e-3)
    crf.fit(X[:3], y[:3], validation_data=(X[3:], y[3:]), callback=lambda i: seen.append(i.value))
    assert len(crf.fit_report_.validation) == len(seen) == crf.n_iter_
    best = max(score for _, score in crf.fit_report_.validation)
    assert crf.score(X[3:], y[3:]) == pytest.approx(best)


BAD = [
    ({"edges": [(0, 3)]}, "clique 0 of example 0 names variable 3, but the example has 3"),
    ({"edges": [(1, 1)]}, "names variable 1 twice"),
    ({"edges": [(0.5, 1)]}, r"'edges' for X\[0\] must be whole numbers of shape \[n, 2\]"),
    ({"edges": [(0, 1), (1, 2), (0, 1)]}, r"edges 0 and 2 of X\[0\] both join nodes 0 and 1; keep"),
    ({"edges": [(0, 1), (1, 2), (1, 0)]}, r"edges 0 and 2 of X\[0\] both join nodes 1 and 0; keep"),
    ({"seen": np.zeros((2, 1))}, r"got 2 rows for 3 cliques of X\[0\]"),
    ({"seen": np.full((3, 1), np.nan)}, r"template 'edges': X\[0\]\[0\] has NaN"),
    ({"y": [0, 1]}, "must have the same length, got 3 and 2"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_graphs_are_named(change, message):
    nodes = np.eye(3)
    edges, seen = change.get("edges", TRIANGLE), change.get("seen", np.ones((3, 1)))
    if len(edges) != 3:
        seen = seen[: len(edges)]
    with pytest.raises(ValueError, match=message):
        GraphCRF().fit([(nodes, edges, seen)], [change.get("y", [0, 1, 0])])


def test_with_full_tables_edges_may_lead_there_and_back():
    nodes, both = np.eye(2), [(0, 1), (1, 0)]
    crf = GraphCRF(tables="full", tol=1e-9).fit([(nodes, both)], [["a", "b"]])
    there, back = crf.pair_intercept_, crf.pair_intercept_.T
    scores = (crf.coef_ @ nodes.T + crf.intercept_[:, None]).T
    joint = np.exp(scores[0][:, None] + scores[1][None, :] + there + back)
    expected = joint.sum(axis=1) / joint.sum()
    np.testing.assert_allclose(crf.predict_marginals([(nodes, both)])[0][0], expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"edges 0 and 1 of X\[1\] both join nodes 0 and 1"):
        crf.predict([(nodes, both), (nodes, [(0, 1), (0, 1)])])


def test_bad_settings_are_named(graphs):
    X, y = graphs
    with pytest.raises(TypeError, match=r"X\[0\] must be a pair"):
        GraphCRF().fit([np.zeros((3, 2))], [[0, 1, 0]])
    with pytest.raises(ValueError, match=r"X\[1\] and X\[0\] must either both have edge features"):
        GraphCRF().fit([X[0], X[1][:2]], y[:2])
    with pytest.raises(ValueError, match="unlike the graphs that the model was fitted to"):
        GraphCRF().fit(X, y).predict([x[:2] for x in X])
    with pytest.raises(ValueError, match="tables must be one of"):
        GraphCRF(tables="ising").fit(X, y)
    with pytest.raises(UnsupportedError, match="'exponentiated_gradient' works only on chains"):
        GraphCRF("hinge", "exponentiated_gradient").fit(X, y)
    with pytest.raises(UnsupportedError, match=r"'hinge' needs map_by_cost.*'loopy_bp'"):
        GraphCRF(Hinge(scaling="slack"), "one_slack", "loopy_bp").fit(X, y)
    with pytest.raises(ValueError, match="must have features of 'each' variable"):
        TemplateCRF([CliqueTemplate("steps", steps)]).fit(X, y)
    with pytest.raises(ValueError, match="name 'nodes'; names must differ"):
        TemplateCRF([CHAIN[0], CHAIN[0]]).fit(X, y)
    with pytest.raises(ValueError, match="compares labels"):
        CliqueTemplate("nodes", tables="potts")
    with pytest.raises(ValueError, match="has no weights"):
        TemplateCRF([CHAIN[0], CliqueTemplate("steps", steps, fit_intercept=False)]).fit(X, y)


def test_two_templates_of_variables_must_agree_on_their_number():
    templates = [
        CliqueTemplate("words", features=lambda x: [[word] for word in x]),
        CliqueTemplate("first", features=lambda x: [[word[0]] for word in x[:3]]),
    ]
    message = r"template 'first' must have one row per variable.*3 rows for 4 var.*X\[1\]"
    with pytest.raises(ValueError, match=message):
        TemplateCRF(templates).fit([["a", "b"], ["c"] * 4], [[0, 1], [0, 1, 0, 1]])
