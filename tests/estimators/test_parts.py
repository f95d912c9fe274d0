"""A fit on data in parts: the same model as of data in one place, whatever the parts."""

import pickle
from operator import itemgetter

import numpy as np
import pytest
from sklearn.base import clone

from chordal import (
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    Dataset,
    GraphCRF,
    GridCRF,
    MatchingModel,
    MultiLabelCRF,
    TemplateCRF,
    TypedGraphCRF,
)
from chordal._errors import UnsupportedError
from chordal.estimators import Given, PreparedPart, fit_parts
from chordal.oracle import Term
from chordal.solvers.adam import Adam


class InTurn:
    """A crew of one, which pickles what goes to a part and what comes back, as machines would."""

    def __init__(self):
        self.leaves = []

    def map(self, function, parts, *shared, each=None):
        own = [()] * len(parts) if each is None else [(v,) for v in each]
        return [
            self._over(function(part, *self._over(shared), *last))
            for part, last in zip(parts, own, strict=True)
        ]

    def tree(self, function, parts):
        level = list(parts)
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [self._over(function(*p)) if len(p) == 2 else p[0] for p in pairs]
        return level[0]

    def join(self, function, parts, *shared):
        return self._over(function(list(parts), *self._over(shared)))

    def share(self, value):
        return value

    def fetch(self, handles):
        return list(handles)

    def take(self, handle):
        return handle

    def settle(self, parts, sizes):
        assert len(parts) == len(sizes)
        return list(parts)

    def total(self, answer, plus, settled, vectors, *rest, first=None):
        leaves = [self._over(answer(part, vectors, *rest)) for part in settled[:first]]
        self.leaves += leaves
        return self.tree(plus, leaves)

    def _over(self, value):
        return pickle.loads(pickle.dumps(value))


def sentences(seed=0, n=40, labels=4):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        own = rng.integers(labels, size=length)
        X.append([[f"w={rng.zipf(1.5)}", f"s={(v + rng.integers(2)) % labels}"] for v in own])
        y.append([f"L{v}" for v in own])
    return X, y


def cut(n, cuts=(0, 7, 8, 20)):
    return list(zip(cuts, (*cuts[1:], n), strict=True))


def fitted_in_parts(estimator, X, y, weight=None, cuts=(0, 7, 8, 20), **options):
    n = len(y)
    parts = [
        Given(X[a:b], y[a:b], None if weight is None else weight[a:b]) for a, b in cut(n, cuts)
    ]
    return fit_parts(estimator, InTurn(), parts, **options)


def same(found, expected, rtol=1e-7):
    assert np.array_equal(found.classes_, expected.classes_)
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=rtol)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_chain():
    X, y = sentences()
    tight = {"tol": 1e-12, "max_iter": 300}
    same(fitted_in_parts(ChainCRF(**tight), X, y), ChainCRF(**tight).fit(X, y))


TIGHT = {"tol": 1e-12, "max_iter": 400}


def graphs(seed=1, n=24, edge_features=False, empty=()):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        k = int(rng.integers(2, 6))
        pairs = [(a, b) for a in range(k) for b in range(a + 1, k) if rng.random() < 0.5]
        edges = np.array([] if i in empty else pairs, dtype=np.int64).reshape(-1, 2)
        labels = rng.integers(3, size=k)
        nodes = rng.normal(size=(k, 2)) + labels[:, None]
        x = (nodes, edges)
        X.append((*x, rng.normal(size=(len(edges), 2))) if edge_features else x)
        y.append(labels)
    return X, y


def table(seed=2, n=40, columns=3, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, columns)) + y[:, None] * [1.0, -1.0, 0.0], y


def case(name):
    """An estimator, its examples and labels."""
    rng = np.random.default_rng(5)
    if name == "chain of attributes with ends":
        return ChainCRF(ends=True, fit_intercept=True, min_freq=2, **TIGHT), *sentences()
    if name == "chain with all pairs":
        return ChainCRF(pairs="all", l2={"node": 0.5}, **TIGHT), *sentences()
    if name == "chain of arrays":
        y = [rng.integers(3, size=int(rng.integers(1, 6))) for _ in range(40)]
        return ChainCRF(**TIGHT), [rng.normal(size=(len(own), 2)) + own[:, None] for own in y], y
    if name == "chain of large numbers":
        y = [rng.integers(3, size=4) for _ in range(40)]
        return ChainCRF(**TIGHT), [1e5 * (rng.normal(size=(4, 2)) + own[:, None]) for own in y], y
    if name == "chain with vectors in some parts":
        X, y = sentences()
        words = [[{"w": t[0], "s": t[1]} for t in x] for x in X]
        for i in (9, 25, 30):
            words[i] = [{**t, "v": rng.normal(size=2)} for t in words[i]]
        return ChainCRF(**TIGHT), words, y
    if name == "chain with labels not observed":
        X, y = sentences()
        return ChainCRF(**TIGHT), X, [[None if rng.random() < 0.2 else v for v in s] for s in y]
    if name == "chain with sets in some parts":
        X, y = sentences()
        y[10] = [{"L0", "L1"} for _ in y[10]]
        return ChainCRF(**TIGHT), X, y
    if name == "chain with distributions":
        X, y = sentences()
        return (
            ChainCRF(**TIGHT),
            X,
            [[{v: 0.75, "L0": 0.25} if v != "L0" else {v: 1.0} for v in s] for s in y],
        )
    if name == "pseudo-likelihood without unobserved labels":
        X, y = sentences()
        y[3] = [None] * len(y[3])
        return ChainCRF("pseudo_likelihood", **TIGHT), X, y
    if name == "softmax margin, balanced":
        return ChainCRF("softmax_margin", class_weight="balanced", **TIGHT), *sentences()
    if name == "l1":
        return ChainCRF(l1=0.3, l2=0.1, tol=1e-10, max_iter=500), *sentences()
    if name == "newton":
        return ChainCRF(solver="newton_cg", tol=1e-10), *sentences()
    if name == "hessian":
        y = [rng.integers(3, size=3) for _ in range(30)]
        X = [rng.normal(size=(3, 2)) + own[:, None] for own in y]
        return ChainCRF(solver="newton"), X, y
    if name == "one slack":
        return ChainCRF("hinge", solver="one_slack", tol=1e-6), *sentences()
    if name == "frozen":
        return ChainCRF(freeze=("transitions",), **TIGHT), *sentences()
    if name == "graph":
        return GraphCRF(**TIGHT), *graphs()
    if name == "graph with features of edges, none in a part":
        return GraphCRF(**TIGHT), *graphs(edge_features=True, empty=(7,))
    if name == "template":
        steps = CliqueTemplate("steps", itemgetter(1), itemgetter(2), fit_intercept=True)
        nodes = CliqueTemplate("nodes", features=itemgetter(0))
        return TemplateCRF([nodes, steps], **TIGHT), *graphs(edge_features=True)
    if name == "typed":
        X, y = graphs()
        X = [({"a": x[0][:1], "b": x[0][1:]}, {("a", "b"): [(0, 0)]}) for x in X]
        y = [{"a": own[:1].tolist(), "b": own[1:].tolist()} for own in y]
        seen = {("a", "b"): np.array([[1.0]])}
        X[9] = (*X[9], seen)
        X = [x if len(x) == 3 else (*x, seen) for x in X]
        kinds = {"node_types": ["a", "b"], "edge_types": [("a", "b")]}
        return TypedGraphCRF(**kinds, **TIGHT), X, y
    if name == "grid":
        y = [rng.integers(2, size=(3, 3)) for _ in range(24)]
        X = [rng.normal(size=(3, 3, 1)) + own[:, :, None] for own in y]
        return GridCRF(contrast="auto", **TIGHT), X, y
    if name == "classifier":
        return CRFClassifier(class_weight="balanced", **TIGHT), *table()
    if name == "multi-label":
        X, y = table()
        sets = [{f"c{v}", *(["first"] if i < 9 else [])} if v else set() for i, v in enumerate(y)]
        return MultiLabelCRF(**TIGHT), X, sets
    if name == "matching":
        X = [rng.normal(size=(3, 3, 2)) + np.eye(3)[:, :, None] for _ in range(24)]
        return MatchingModel("hinge", solver="one_slack", tol=1e-6), X, [[0, 1, 2] for _ in X]
    raise AssertionError(name)


CASES = [
    "chain of attributes with ends", "chain with all pairs", "chain of arrays",
    "chain of large numbers", "chain with vectors in some parts",
    "chain with labels not observed", "chain with sets in some parts",
    "chain with distributions", "pseudo-likelihood without unobserved labels",
    "softmax margin, balanced", "l1", "newton", "hessian", "one slack", "frozen", "graph",
    "graph with features of edges, none in a part", "template", "typed", "grid", "classifier",
    "multi-label", "matching",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_that_of_data_in_one_place(name):
    estimator, X, y = case(name)
    expected = clone(estimator).fit(X, y)
    found = fitted_in_parts(estimator, X, y)
    assert found is estimator
    atol = 1e-3 if expected.fit_report_.solver == "one_slack" else 1e-5
    scale = max(1.0, float(np.abs(expected.weights_).max()))
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=atol * scale)
    assert found.objective_ == pytest.approx(expected.objective_, rel=atol)
    report, other = found.fit_report_, expected.fit_report_
    assert (report.solver, report.inference) == (other.solver, other.inference)
    assert (report.exact, report.prediction) == (other.exact, other.prediction)
    assert report.label_share == other.label_share
    assert repr(found.predict(X)) == repr(expected.predict(X))


def test_weights_of_examples_and_parts_without_any():
    X, y = sentences()
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=len(X))
    expected = ChainCRF(**TIGHT).fit(X, y, weight)
    found = fitted_in_parts(ChainCRF(**TIGHT), X, y, weight, cuts=(0, 0, 7, 30, 30))
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="sample_weight is zero for every example"):
        fitted_in_parts(ChainCRF(), X, y, np.zeros(len(X)))
    with pytest.raises(ValueError, match="X is empty"):
        fit_parts(ChainCRF(), InTurn(), [Given([], []), Given([], [])])


def test_warm_start_goes_on_from_the_model():
    X, y = sentences()
    more, labels = sentences(seed=9)
    models = [ChainCRF(warm_start=True, **TIGHT).fit(X, y) for _ in range(2)]
    expected = models[0].fit(more, labels)
    found = fitted_in_parts(models[1], more, labels)
    assert found.n_iter_ < 400
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=1e-5)


def test_validation_data_in_memory_and_in_parts_stop_at_the_same_iteration():
    X, y = sentences()
    held, gold = sentences(seed=4, n=12)
    settings = {"l2": 0.01, "validation_interval": 1, "n_iter_no_change": 3}
    expected = ChainCRF(**settings).fit(X, y, validation_data=(held, gold))
    parts = [Given(held[a:b], gold[a:b]) for a, b in ((0, 0), (0, 5), (5, 12))]
    for given in ((held, gold), parts):
        found = fitted_in_parts(ChainCRF(**settings), X, y, validation_data=given)
        assert found.fit_report_.validation == expected.fit_report_.validation
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=1e-6)


def test_a_minibatch_takes_a_share_of_every_part():
    X, y = sentences()
    settings = {"solver": Adam(batch_size=8, random_state=0, max_iter=60)}
    found = fitted_in_parts(ChainCRF(**settings), X, y)
    again = fitted_in_parts(ChainCRF(**settings), X, y)
    assert np.array_equal(found.weights_, again.weights_)
    best = ChainCRF(**TIGHT).fit(X, y).objective_
    assert best <= found.objective_ < 1.02 * best


def test_float32_on_the_way_costs_digits_alone():
    X, y = sentences()
    exact = fitted_in_parts(ChainCRF(), X, y)
    short = fitted_in_parts(ChainCRF(), X, y, dtype="float32")
    assert not np.array_equal(short.weights_, exact.weights_)
    assert short.objective_ == pytest.approx(exact.objective_, rel=1e-5)


@pytest.mark.parametrize("solver", ["sgd", "averaged_perceptron", "block_frank_wolfe", "arow"])
def test_solvers_of_single_examples_are_refused_before_any_work(solver):
    with pytest.raises(UnsupportedError, match=r"visits single examples.*'lbfgs'.*'one_slack'"):
        fit_parts(ChainCRF(solver=solver), None, [])


def test_the_hinge_gets_a_solver_that_sums():
    X, y = sentences()
    assert fitted_in_parts(ChainCRF("hinge"), X, y).fit_report_.solver == "one_slack"


def test_sets_are_not_completed_in_parts():
    X, y = sentences()
    y[10] = [{"L0", "L1"} for _ in y[10]]
    with pytest.raises(UnsupportedError, match="completes sets of labels"):
        fitted_in_parts(ChainCRF("hinge"), X, y)


def test_parts_of_different_kinds_are_both_named():
    rng = np.random.default_rng(0)
    y = [[0, 1], [1, 0], [0, 1]]
    widths = [rng.normal(size=(2, n)) for n in (3, 3, 4)]
    with pytest.raises(ValueError, match=r"partitions 2 and 0 differ: .*4 columns"):
        fitted_in_parts(ChainCRF(), widths, y, cuts=(0, 1, 2))
    (with_features,), labels = graphs(n=1, edge_features=True)
    (without,), _ = graphs(n=1)
    with pytest.raises(ValueError, match=r"partitions 1 and 0 differ: .*'edges'"):
        fitted_in_parts(GraphCRF(), [with_features, without], labels * 2, cuts=(0, 1))


def test_the_estimator_stays_as_it_was_where_a_fit_fails():
    X, y = sentences()
    model = fitted_in_parts(ChainCRF(), X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="same number"):
        fit_parts(model, InTurn(), [Given(X, y[:-1])])
    assert all(vars(model)[name] is value for name, value in before.items())


def test_only_touched_weights_are_sent():
    X = [[[f"{i}.{k}", "all"] for k in range(20)] for i in range(8)]
    y = [["A", "B"] * 10 for _ in X]
    sent, values = [], []
    for cuts in (tuple(range(8)), (0,)):
        crew = InTurn()
        model = fit_parts(
            ChainCRF(solver="newton_cg", max_iter=1),  # ends with a Hessian–vector product
            crew,
            [Given(X[a:b], y[a:b]) for a, b in cut(len(X), cuts)],
        )
        sent.append([own for own in crew.leaves if isinstance(own, Term)])
        values.append(model.objective_)
    n = model.layout_.n_weights
    assert all(own.at is None for own in sent[1])
    assert all(own.at is not None and len(own.at) < n / 4 for own in sent[0])
    assert sum(own.nbytes for own in sent[0][:8]) < 4 * sent[1][0].nbytes
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("name", ["chain of attributes with ends", "typed", "grid", "classifier"])
def test_parts_of_a_prepared_data_set(name, tmp_path):
    estimator, X, y = case(name)
    expected = clone(estimator).fit(X, y)
    for a, b in cut(len(y)):
        clone(estimator).prepare(tmp_path / "data", X[a:b], y[a:b], append=a > 0)
    data = Dataset(tmp_path / "data")
    assert data.n_parts == 4
    parts = [Given(PreparedPart((data.path,), 0, k)) for k in range(data.n_parts)]
    found = fit_parts(estimator, InTurn(), parts)
    if name != "grid":  # whose contrast is that of the first data that were prepared
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=1e-4)
    assert repr(found.classes_) == repr(expected.classes_)
