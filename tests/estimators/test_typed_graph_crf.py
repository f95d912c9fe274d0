"""Graphs whose nodes are of several types, with labels and features of their own."""

import pickle
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from chordal import CliqueTemplate, GraphCRF, TemplateCRF, TypedGraphCRF, load, save
from chordal._errors import UnsupportedError
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.inference import INFERENCE
from chordal.objectives.hinge import Hinge

TYPES = ["word", "text"]
LINKS = [("word", "word"), ("word", "text"), ("text", "text")]
TOPICS = ["sport", "art", "news"]


def example(rng, observed=True):
    """Words point to texts; nouns are rare in sport, and each text looks like its topic."""
    n, m = int(rng.integers(3, 5)), int(rng.integers(1, 3))
    topics, of = rng.integers(0, 3, m), rng.integers(0, m, n)
    nouns = rng.random(n) < np.array([0.15, 0.6, 0.9])[topics[of]]
    nodes = {
        "word": np.stack([nouns + 0.8 * rng.normal(size=n), np.ones(n)], axis=1),
        "text": np.eye(3)[topics] + 0.8 * rng.normal(size=(m, 3)),
    }
    edges = {
        ("word", "word"): [(i, i + 1) for i in range(n - 1)],
        ("word", "text"): np.stack([np.arange(n), of], axis=1),
        ("text", "text"): [(0, 1)] if m == 2 else [],
    }
    seen = {("word", "text"): rng.random((n, 2))}
    y = {"word": [int(v) for v in nouns], "text": [TOPICS[k] for k in topics]}
    return ((nodes, edges, seen) if observed else (nodes, edges)), y


@pytest.fixture
def texts():
    rng = np.random.default_rng(1)
    data = [example(rng) for _ in range(15)]
    return [x for x, _ in data], [y for _, y in data]


def model(*args, **kwargs):
    return TypedGraphCRF(*args, node_types=TYPES, edge_types=LINKS, **{"l2": 0.3, **kwargs})


def brute_force(crf, x):
    """All labellings of an example with their scores, from the weights of templates alone."""
    nodes, edges, seen = x
    w = {name: crf.template_weights(name) for name in crf.layout_.slices}
    sizes = {t: len(nodes[t]) for t in TYPES}
    out = []
    for words in product(range(2), repeat=sizes["word"]):
        for topics in product(range(3), repeat=sizes["text"]):
            y = {"word": words, "text": topics}
            score = 0.0
            for t in TYPES:
                for v, label in enumerate(y[t]):
                    score += nodes[t][v] @ w[t]["features"][:, label] + w[t]["intercept"][label]
            for a, b in LINKS:
                own = w[f"{a}-{b}"]
                for e, (u, v) in enumerate(edges[a, b]):
                    pair = (y[a][u], y[b][v])
                    score += own["intercept"][pair]
                    if (a, b) in seen:
                        score += seen[a, b][e] @ own["features"][(slice(None), *pair)]
            out.append((score, y))
    return out


def test_all_answers_beside_brute_force(texts):
    X, y = texts
    crf = model().fit(X, y)
    assert crf.fit_report_.exact
    assert {t: own.tolist() for t, own in crf.classes_.items()} == {
        "word": [0, 1], "text": sorted(TOPICS)
    }  # fmt: skip
    found, ranked = crf.predict_marginals(X), crf.k_best(X, 3)
    best, likelihood = crf.predict(X, method="map"), crf.log_likelihood(X, y)
    codes = crf.predict_codes(X, method="map")
    pairs, first = crf.predict_marginals(X, "word-text"), 0
    for i, x in enumerate(X):
        listed = brute_force(crf, x)
        scores = np.array([score for score, _ in listed])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        for t in TYPES:
            expected = np.zeros_like(found[i][t])
            for share, (_, own) in zip(p, listed, strict=True):
                expected[np.arange(len(own[t])), list(own[t])] += share
            assert_allclose(found[i][t], expected, atol=1e-9)
        expected = np.zeros((len(x[1]["word", "text"]), 2, 3))
        for share, (_, own) in zip(p, listed, strict=True):
            for e, (u, v) in enumerate(x[1]["word", "text"]):
                expected[e, own["word"][u], own["text"][v]] += share
        assert_allclose(pairs[i], expected, atol=1e-9)
        named = [{"word": list(o["word"]), "text": [sorted(TOPICS)[k] for k in o["text"]]}
                 for _, o in listed]  # fmt: skip
        order = np.argsort(-scores)[:3]
        assert best[i] == named[order[0]]
        assert [own for own, _ in ranked[i]] == [named[k] for k in order]
        assert_allclose([chance for _, chance in ranked[i]], np.log(p[order]), atol=1e-9)
        assert_allclose(likelihood[i], np.log(p[named.index(y[i])]), atol=1e-9)
        own = listed[order[0]][1]
        n = len(own["word"]) + len(own["text"])
        assert_array_equal(codes[first : first + n], [*own["word"], *own["text"]])
        first += n
    right = sum(a == b for p, g in zip(best, y, strict=True) for t in TYPES
                for a, b in zip(p[t], g[t], strict=True))  # fmt: skip
    crf.prediction = "map"
    assert_allclose(crf.score(X, y), right / first)


def test_the_optimum_has_no_gradient(texts):
    X, y = texts
    crf = model(tol=1e-12, max_iter=3000).fit(X, y)

    def value(weights):
        crf.weights_ = weights
        return -crf.log_likelihood(X, y).sum() + 0.15 * (weights**2).sum()

    w = crf.weights_
    assert_allclose(value(w), crf.objective_, rtol=1e-9)
    for k in range(len(w)):
        step = 1e-4 * (np.arange(len(w)) == k)
        assert abs(value(w + step) - value(w - step)) / 2e-4 < 1e-4


def test_one_type_is_a_graph():
    rng = np.random.default_rng(0)
    X, y = [], []
    for n in (5, 6, 4):
        edges = np.array([(i, (i + 1) % n) for i in range(n)])
        X.append((rng.normal(size=(n, 2)), edges, rng.normal(size=(n, 2))))
        y.append([["a", "b", "c"][k] for k in rng.integers(0, 3, n)])
    typed = [({"v": nodes}, {("v", "v"): edges}, {("v", "v"): seen}) for nodes, edges, seen in X]
    of_type = [{"v": own} for own in y]
    one = {"node_types": ["v"], "edge_types": [("v", "v")]}
    for objective in ("likelihood", "pseudo_likelihood", "hinge"):
        for tables in ("symmetric", "full", "antisymmetric"):
            both = {"l2": 0.2, "tol": 1e-9, "tables": tables}
            plain = GraphCRF(objective, **both).fit(X, y)
            crf = TypedGraphCRF(objective, **both, **one).fit(typed, of_type)
            assert_allclose(crf.weights_, plain.weights_, atol=2e-4)
            assert crf.predict(typed) == [{"v": own} for own in plain.predict(X)]
            assert_allclose(crf.objective_, plain.objective_, rtol=1e-6)
    named = plain.predict_marginals(X)
    for own, other in zip(crf.predict_marginals(typed), named, strict=True):
        assert_allclose(own["v"], other, atol=1e-4)


@pytest.mark.parametrize("objective", ["pseudo_likelihood", "piecewise", "hinge", "softmax_margin"])
def test_other_objectives_learn(texts, objective):
    X, y = texts
    assert model(objective).fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("solver", ["one_slack", "block_frank_wolfe", "sgd", "adam", "newton_cg"])
def test_solvers(texts, solver):
    X, y = texts
    crf = model("auto", solver, random_state=0, max_iter=40)
    with pytest.warns() if solver == "adam" else nullcontext():
        assert crf.fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("method", ["loopy_bp", "tree_reweighted", "mean_field", "gibbs"])
def test_approximate_marginals(texts, method):
    X, y = texts
    crf = model().fit(X, y)
    exact = crf.predict_marginals(X)
    crf.inference = INFERENCE.resolve(method, **({"random_state": 0} if method == "gibbs" else {}))
    found = crf.predict_marginals(X)
    gap = max(np.abs(a[t] - b[t]).max() for a, b in zip(exact, found, strict=True) for t in TYPES)
    assert gap < 0.3
    assert found[0]["text"].shape == exact[0]["text"].shape


@pytest.mark.parametrize("method", ["trw_s", "ad3", "linear_program", "icm", "milp"])
def test_approximate_labellings(texts, method):
    X, y = texts
    crf = model().fit(X, y)
    exact = crf.predict(X, method="map")
    crf.inference = method
    same = [a == b for a, b in zip(exact, crf.predict(X, method="map"), strict=True)]
    assert np.mean(same) > 0.7


def test_training_by_loopy_belief_propagation(texts):
    X, y = texts
    assert model(inference="loopy_bp").fit(X, y).score(X, y) > 0.8


def test_known_and_forbidden_labels(texts):
    X, y = texts
    crf = model().fit(X, y)
    n, m = len(y[0]["word"]), len(y[0]["text"])
    allowed = [{"text": ["art"] * m, "word": [[0, 1]] + [None] * (n - 1)}, *[None] * (len(X) - 1)]
    found = crf.predict_marginals(X, allowed_labels=allowed)
    art = crf.classes_["text"].tolist().index("art")
    assert_allclose(found[0]["text"][:, art], 1.0)
    assert crf.predict(X, allowed_labels=allowed)[0]["text"] == ["art"] * m
    listed = [(s, own) for s, own in brute_force(crf, X[0]) if set(own["text"]) == {art}]
    best = max(listed, key=lambda item: item[0])[1]
    assert crf.predict(X[:1], allowed_labels=allowed[:1])[0]["word"] == list(best["word"])
    flags = np.array([k == art for k in range(3)])
    by_flags = crf.predict_marginals(X[:1], allowed_labels=[{"text": [flags] * m}])
    assert_allclose(by_flags[0]["word"], found[0]["word"], atol=1e-12)
    cases = [
        ([{"topic": []}], "has the type 'topic'"),
        ([{"text": ["art"] * (m + 1)}], f"must have {m} entries"),
        ([{"text": ["odd"] * m}], "unknown label 'odd'"),
    ]
    for given, match in cases:
        with pytest.raises(ValueError, match=match):
            crf.predict(X[:1], allowed_labels=given)


def test_potentials_have_the_labels_of_classes(texts):
    X, y = texts
    crf = model().fit(X, y)
    p = crf.potentials(X)
    assert_array_equal(np.unique(p.structure.label_counts), [2, 3])
    numbers = [*(v for own in y for v in [*own["word"], *map(sorted(TOPICS).index, own["text"])])]
    log_z = INFERENCE.resolve("junction_tree").log_partition(p)
    assert_allclose(p.score(numbers) - log_z, crf.log_likelihood(X, y), atol=1e-9)


def test_labels_that_are_not_observed(texts):
    """The likelihood sums over them, beside a sum over what they could be."""
    X, y = texts
    partly = [{**own, "text": [None] * len(own["text"])} if i % 2 else own
              for i, own in enumerate(y)]  # fmt: skip
    sets = [{t: [set(range(2)) if v is None and t == "word" else (set(TOPICS) if v is None else v)
                 for v in own[t]] for t in TYPES} for own in partly]  # fmt: skip
    marked = [{t: ["?" if v is None else v for v in own[t]] for t in TYPES} for own in partly]
    one = model(tol=1e-9).fit(X, partly)
    assert_allclose(model(tol=1e-9).fit(X, sets).weights_, one.weights_, atol=1e-6)
    same = model(tol=1e-9, ignore_label="?").fit(X, marked)
    assert_allclose(same.weights_, one.weights_, atol=1e-6)
    value = 0.15 * (one.weights_**2).sum()
    for i, x in enumerate(X):
        listed = brute_force(one, x)
        scores = np.array([s for s, _ in listed])
        fits = [
            list(own["word"]) == y[i]["word"]
            and (i % 2 or [sorted(TOPICS)[k] for k in own["text"]] == y[i]["text"])
            for _, own in listed
        ]
        value += np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[np.array(fits, bool)])
    assert_allclose(one.objective_, value, rtol=1e-9)
    kept = model("pseudo_likelihood").fit(X, partly)
    assert kept.score(X, y) > 0.6
    soft = [{t: [{v: 1.0} for v in own[t]] for t in TYPES} for own in y]
    hard = model(tol=1e-9).fit(X, y)
    assert_allclose(model(tol=1e-9).fit(X, soft).weights_, hard.weights_, atol=1e-6)


def test_warm_start_with_new_labels_and_files(texts, tmp_path):
    X, y = texts
    crf = model(warm_start=True, tol=1e-9).fit(X, y)
    before = crf.template_weights("word-text")
    renamed = [{**own, "text": ["travel" if v == "art" else v for v in own["text"]]} for own in y]
    more = pickle.loads(pickle.dumps(crf)).set_params(freeze=("word-text",), max_iter=1)
    with pytest.warns():
        more.fit(X, renamed)
    assert more.classes_["text"].tolist() == ["art", "news", "sport", "travel"]
    after = more.template_weights("word-text")
    assert_allclose(after["intercept"][:, :3], before["intercept"])
    assert_array_equal(after["intercept"][:, 3], 0.0)
    save(crf, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.predict(X) == crf.predict(X)
    assert_array_equal(again.weights_, crf.weights_)
    assert again.classes_["text"].tolist() == crf.classes_["text"].tolist()
    assert crf.compact(0.01, "float32").score(X, y) > 0.8
    facts, arrays = crf.to_state()
    facts["labels"] = {**facts["labels"], "types": ["word", "topic"]}
    with pytest.raises(ValueError, match="types of labels"):
        model().from_state(facts, arrays)


def test_attributes_sparse_rows_and_types_that_are_missing():
    words = [["we", "win"], ["paint"], []]
    X = [
        ({"word": [[w] for w in own], "text": sp.csr_array(np.eye(3)[[i]])},
         {("word", "text"): [(k, 0) for k in range(len(own))]})
        for i, own in enumerate(words)
    ]  # fmt: skip
    X[2] = ({"text": sp.csr_array(np.eye(3)[[2]])}, {})
    y = [
        {"word": ["P", "V"], "text": ["sport"]},
        {"word": ["V"], "text": ["art"]},
        {"text": ["news"]},
    ]
    crf = TypedGraphCRF(node_types=TYPES, edge_types=[("word", "text")], l2=0.1).fit(X, y)
    assert crf.predict(X) == [*y[:2], {"word": [], "text": ["news"]}]
    assert crf.predict_marginals(X)[2]["word"].shape == (0, 2)
    assert crf.predict([]) == []
    assert crf.predict_marginals([]) == []
    alone = X[2:]
    assert crf.predict(alone) == [{"word": [], "text": ["news"]}]


def test_templates_with_types(texts):
    X, y = texts
    crf = model(tol=1e-10).fit(X, y)

    def edges(a, b):
        return lambda x: x[1][a, b]

    templates = [
        CliqueTemplate("word", features=lambda x: x[0]["word"], types=("word",)),
        CliqueTemplate("text", features=lambda x: x[0]["text"], types=("text",)),
        CliqueTemplate("ww", edges("word", "word"), tables="symmetric", types=("word", "word")),
        CliqueTemplate(
            "wt", edges("word", "text"), lambda x: x[2]["word", "text"], types=("word", "text")
        ),
        CliqueTemplate("tt", edges("text", "text"), tables="symmetric", types=("text", "text")),
    ]
    same = TemplateCRF(templates, l2=0.3, tol=1e-10).fit(X, y)
    assert_allclose(same.weights_, crf.weights_, atol=1e-6)
    triples = CliqueTemplate(
        "three", lambda x: [(0, 1, 0)], order=3, types=("word", "word", "text")
    )
    more = TemplateCRF([*templates, triples], l2=0.3).fit(X, y)
    assert more.template_weights("three")["intercept"].shape == (2, 2, 3)
    assert more.fit_report_.exact
    with pytest.raises(ValueError, match="must have types, because others"):
        TemplateCRF([*templates, CliqueTemplate("odd", "steps")]).fit(X, y)
    with pytest.raises(ValueError, match="defines the variables of type 'text'"):
        TemplateCRF([templates[0], templates[3]]).fit(X, y)
    with pytest.raises(ValueError, match="different labels"):
        CliqueTemplate("odd", edges("word", "text"), tables="potts", types=("word", "text"))
    with pytest.raises(ValueError, match="must be a tuple of 2 names"):
        CliqueTemplate("odd", edges("word", "text"), types=("word",))
    far = CliqueTemplate("far", lambda x: [(0, 9)], types=("word", "text"))
    with pytest.raises(ValueError, match="variable 9 of type 'text'"):
        TemplateCRF([*templates, far]).fit(X, y)
    twice = CliqueTemplate("twice", lambda x: [(1, 1)], types=("word", "word"))
    with pytest.raises(ValueError, match="names a variable twice"):
        TemplateCRF([*templates, twice]).fit(X, y)


def test_threads_and_sample_weights(texts):
    X, y = texts
    one, two = (model(n_jobs=n).fit(5 * X, 5 * y).weights_ for n in (1, 2))
    assert_array_equal(one, two)
    twice = model(tol=1e-10).fit([*X, X[0]], [*y, y[0]])
    weighed = model(tol=1e-10).fit(X, y, sample_weight=[2.0] + [1.0] * (len(X) - 1))
    assert_allclose(weighed.weights_, twice.weights_, atol=1e-5)


def test_validation_scores(texts):
    X, y = texts
    crf = model(max_iter=20, validation_interval=5).fit(X, y, validation_data=(X, y))
    assert 0.5 < crf.fit_report_.validation[-1][1] <= 1.0


def test_what_is_refused(texts):
    X, y = texts
    cases = [
        ({"node_types": []}, ValueError, "node_types must be"),
        ({"edge_types": [("word", "odd")]}, ValueError, r"edge_types\[0\] must be a pair"),
        ({"edge_types": [("word", "word")] * 2}, ValueError, "'word-word' twice"),
        ({"edge_types": LINKS[:1]}, ValueError, "unknown type .*; edge_types has"),
        ({"node_types": ["word", "text", "odd"]}, ValueError, "no template|names no label|label"),
        ({"class_weight": {"sport": 2.0}, "objective": "hinge"}, UnsupportedError, "by label"),
        ({"objective": Hinge(WeightedHamming({"sport": 2}))}, UnsupportedError, "by label|names"),
    ]
    for changed, error, match in cases:
        with pytest.raises((error, ValueError), match=match):
            clone(model()).set_params(**changed).fit(X, y)
    crf = model().fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\]\['text'\] must have"):
        model().fit(X, [{**y[0], "text": ["art"] * 3}, *y[1:]])
    with pytest.raises(TypeError, match="must be a dict of the types"):
        model().fit(X, [["a"], *y[1:]])
    with pytest.raises(TypeError, match="must be a pair of dicts"):
        crf.predict([np.zeros((2, 2))])
    nodes, edges, seen = X[0]
    with pytest.raises(ValueError, match="join the same nodes"):
        crf.predict([(nodes, {**edges, ("word", "word"): [(0, 1), (1, 0)]}, seen)])
    with pytest.raises(ValueError, match="but the model was fitted without"):
        crf.predict([(nodes, edges, {**seen, ("word", "word"): np.ones((len(nodes["word"]), 1))})])
    with pytest.raises(ValueError, match="must have one row per clique"):
        crf.predict([(nodes, edges)])
    with pytest.raises(ValueError, match="unknown type 'odd'; node_types has"):
        crf.predict([({**nodes, "odd": np.eye(2)}, edges, seen)])
    with pytest.raises(ValueError, match="not seen in training"):
        crf.log_likelihood(X[:1], [{**y[0], "text": ["odd"] * len(y[0]["text"])}])
