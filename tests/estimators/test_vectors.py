"""Strings and arrays in one model: a chain whose dicts hold vectors."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import (
    ChainCRF,
    CliqueTemplate,
    GraphCRF,
    TemplateCRF,
    TwoStageCRF,
    UnsupportedError,
    load,
    save,
)
from chordal.compat.crfsuite_model import write_crfsuite

EXACT = {"tol": 1e-12, "max_iter": 5000, "pairs": "all"}


def problem(n=40, seed=0, dtype=np.float64):
    """Labels depend on a word, on an array and on the label before; some tokens have no array."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tokens, labels, state = [], [], 0
        for _ in range(rng.integers(1, 7)):
            word, vec = rng.integers(4), rng.normal(size=3).astype(dtype)
            token = {"w": f"w{word}", "vec": vec, "bias": 1.0}
            if rng.random() < 0.3:
                token["more"] = rng.normal(size=2).astype(dtype)
            state = int(vec[0] + word + state + rng.normal() > 2)
            tokens.append(token)
            labels.append("AB"[state] if rng.random() < 0.9 else "C")
        X.append(tokens)
        y.append(labels)
    return X, y


def flat(X):
    """The same with a named attribute for every number."""
    return [
        [
            {
                k: {str(i): float(z) for i, z in enumerate(v)} if isinstance(v, np.ndarray) else v
                for k, v in token.items()
            }
            for token in x
        ]
        for x in X
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["lbfgs", "newton_cg"])
def test_the_same_model_as_with_an_attribute_for_every_number(dtype, solver):
    X, y = problem(dtype=dtype)
    vectors = ChainCRF(solver=solver, l2=0.5, **EXACT).fit(X, y)
    named = ChainCRF(solver=solver, l2=0.5, **EXACT).fit(flat(X), y)
    assert vectors.layout_.n_weights == named.layout_.n_weights
    assert_allclose(vectors.objective_, named.objective_, rtol=1e-9)
    new, _ = problem(seed=1, dtype=dtype)
    assert vectors.predict(new) == named.predict(flat(new))
    for own, other in zip(
        vectors.predict_marginals(new), named.predict_marginals(flat(new)), strict=True
    ):
        assert_allclose(own, other, atol=1e-6)
    mine = {(name, label): w for name, label, w in vectors.top_features(10**6)}
    theirs = {(name, label): w for name, label, w in named.top_features(10**6)}
    assert mine.keys() == theirs.keys()
    assert ("more:1", "B") in mine
    assert_allclose([mine[k] for k in sorted(mine)], [theirs[k] for k in sorted(mine)], atol=1e-5)


@pytest.mark.parametrize(
    "solver", ["sgd", "averaged_perceptron", "passive_aggressive", "arow", "block_frank_wolfe"]
)
def test_online_solvers_take_the_same_steps(solver):
    X, y = problem(20)
    settings = {"solver": solver, "max_iter": 3, "pairs": "all", "random_state": 0}
    if solver == "sgd":
        settings["l2"] = 0.1
    settings |= {"fit_intercept": True, "ends": True}
    vectors, named = ChainCRF(**settings).fit(X, y), ChainCRF(**settings).fit(flat(X), y)
    new, _ = problem(seed=1)
    for own, other in zip(vectors.node_scores(new), named.node_scores(flat(new)), strict=True):
        assert_allclose(own, other, atol=1e-8)
    assert_allclose(vectors.transitions_, named.transitions_, atol=1e-8)


def test_brute_force():
    """log p(y | x) from the weights that users see, all labellings listed."""
    X, y = problem(6)
    crf = ChainCRF(pairs="all", transitions="all", l2=0.3).fit(X, y)
    classes = crf.classes_.tolist()
    coef, vectors = crf.coef_.toarray(), crf.template_weights("vectors")["features"]
    names = [crf.input_.name(k) for k in range(crf.input_.n_columns)]

    def score(x, labels):
        total = sum(crf.transitions_[a, b] for a, b in pairwise(labels))
        for token, label in zip(x, labels, strict=True):
            total += coef[label, names.index("w:" + token["w"])] + coef[label, names.index("bias")]
            total += token["vec"] @ vectors[:3, label]
            if "more" in token:
                total += token["more"] @ vectors[3:, label]
        return total

    for x, gold, found in zip(X, y, crf.log_likelihood(X, y), strict=True):
        every = [score(x, labels) for labels in product(range(len(classes)), repeat=len(x))]
        expected = score(x, [classes.index(label) for label in gold])
        assert_allclose(found, expected - np.logaddexp.reduce(every), atol=1e-10)


def test_groups():
    X, y = problem()
    with pytest.raises(ValueError, match="vectors"):
        ChainCRF(l2={"vector": 1.0}).fit(X, y)
    strong = ChainCRF(l2={"vectors": 1e9}, **EXACT).fit(X, y)
    assert np.abs(strong.template_weights("vectors")["features"]).max() < 1e-6
    assert np.abs(strong.coef_.toarray()).max() > 0.1
    frozen = ChainCRF(freeze=("vectors",), **EXACT).fit(X, y)
    without = [[{k: v for k, v in t.items() if k in ("w", "bias")} for t in x] for x in X]
    assert_allclose(frozen.objective_, ChainCRF(**EXACT).fit(without, y).objective_, rtol=1e-9)


def test_models_without_arrays_stay_as_they_were(tmp_path):
    """The same weights and the same file as with no template of vectors."""
    X, y = problem()
    crf = ChainCRF().fit(flat(X), y)
    assert crf.reader_.input("vectors") is None
    assert crf.layout_["vectors"].rows is None
    facts, arrays = crf.to_state()
    assert [own["name"] for own in facts["templates"]] == [
        *("node", "edge", "transitions", "intercept", "start", "end")
    ]
    assert not any(name.startswith("vectors") for name in arrays)
    assert crf.quick() is not None
    with pytest.raises(TypeError, match=r"X\[0\]\[0\] has the array 'vec', and training saw no"):
        crf.predict(X[:1])
    with pytest.raises(TypeError, match=r"X\[0\]\[0\] has the array 'vec', and training saw no"):
        crf.predict(X)


def test_files_and_pickles(tmp_path):
    X, y = problem()
    crf = ChainCRF().fit(X, y)
    assert crf.quick() is None
    assert crf.predict(X[:1]) == crf.predict(X)[:1]
    save(crf, tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(crf))):
        assert other.predict(X) == crf.predict(X)
        assert other.reader_.input("vectors").widths == {"vec": 3, "more": 2}
        with pytest.raises(ValueError, match=r"'vec' in X\[0\]\[0\] must have 3 numbers as in"):
            other.predict([[{"vec": np.ones(4)}]])
        with pytest.raises(ValueError, match="the array 'vex', which was not in the training"):
            other.predict([[{"vex": np.ones(3)}]])


def test_hostile_files():
    X, y = problem()
    facts, arrays = ChainCRF().fit(X, y).to_state()
    own = next(t for t in facts["templates"] if t["name"] == "vectors")
    for rows in (None, {"kind": "dense", "n_columns": 5}, {**own["rows"], "widths": [3, 3]}):
        wrong = [{**t, "rows": rows} if t is own else t for t in facts["templates"]]
        with pytest.raises((ValueError, LookupError, TypeError)):
            ChainCRF().from_state({**facts, "templates": wrong}, arrays)


def test_learning_goes_on_with_new_arrays():
    X, y = problem()
    words = [[{"w": t["w"]} for t in x] for x in X]
    crf = ChainCRF().fit(words, y)
    before = {(n, label): w for n, label, w in crf.top_features(10**6)}
    crf.set_params(max_iter=1).partial_fit(X[:1], y[:1])
    assert set(crf.reader_.input("vectors").widths) <= {"vec", "more"}
    later = {(n, label): w for n, label, w in crf.top_features(10**6)}
    assert before.keys() <= later.keys()
    crf.set_params(max_iter=1000).partial_fit(X, y)
    assert set(crf.reader_.input("vectors").widths) == {"vec", "more"}
    warm = ChainCRF(warm_start=True, **EXACT).fit(X[:5], y[:5]).fit(X, y)
    assert_allclose(warm.objective_, ChainCRF(**EXACT).fit(X, y).objective_, rtol=1e-8)


def test_compact_keeps_arrays():
    X, y = problem()
    crf = ChainCRF(l1=0.5).fit(X, y)
    small = crf.compact(X=X, y=y)
    assert small.compact_report_.labels_changed == 0.0
    assert_array_equal(
        small.template_weights("vectors")["features"], crf.template_weights("vectors")["features"]
    )


def test_validation_data_and_jobs():
    X, y = problem()
    one = ChainCRF(n_jobs=1).fit(X[:30], y[:30], validation_data=(X[30:], y[30:]))
    two = ChainCRF(n_jobs=2).fit(X[:30], y[:30], validation_data=(X[30:], y[30:]))
    assert_array_equal(one.weights_, two.weights_)
    assert one.fit_report_.validation == two.fit_report_.validation


def test_two_stages():
    X, y = problem()
    unary = ChainCRF(transitions="none", pairs="all")
    joint = TwoStageCRF(unary, joint=True).fit(X, y)
    named = TwoStageCRF(ChainCRF(transitions="none", pairs="all"), joint=True).fit(flat(X), y)
    for own, other in zip(
        joint.predict_marginals(X), named.predict_marginals(flat(X)), strict=True
    ):
        assert_allclose(own, other, atol=1e-3)


def test_where_arrays_are_refused(tmp_path):
    X, y = problem()
    crf = ChainCRF().fit(X, y)
    with pytest.raises(UnsupportedError, match="arrays among attributes"):
        write_crfsuite(crf, tmp_path / "model.crfsuite")
    with pytest.raises(TypeError, match="has the array 'vec', and only ChainCRF and GraphCRF"):
        TemplateCRF([CliqueTemplate("words", features=lambda x: x)]).fit(X, y)
    edges = [(x, np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1), x[1:]) for x in X]
    with pytest.raises(TypeError, match="has the array 'vec', and only ChainCRF and GraphCRF"):
        GraphCRF().fit(edges, y)


def test_nodes_of_graphs(tmp_path):
    X, y = problem()

    def graphs(X):
        return [
            (x, np.array([(i, i + 1) for i in range(len(x) - 1)], int).reshape(-1, 2)) for x in X
        ]

    settings = {**EXACT, "l2": {"nodes": 0.5, "edges": 0.5, "vectors": 0.5}}
    graph = GraphCRF(**settings).fit(graphs(X), y)
    named = GraphCRF(**{**settings, "l2": 0.5}).fit(graphs(flat(X)), y)
    assert_allclose(graph.objective_, named.objective_, rtol=1e-9)
    assert graph.predict(graphs(X)) == named.predict(graphs(flat(X)))
    save(graph, tmp_path / "graph")
    assert load(tmp_path / "graph").predict(graphs(X)) == graph.predict(graphs(X))
    with pytest.raises(TypeError, match=r"X\[1\]\[0\] has the array 'vec', and training saw no"):
        named.predict([*graphs(flat(X))[:1], *graphs(X[:1])])
