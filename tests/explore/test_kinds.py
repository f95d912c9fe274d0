"""What pages of rows, sets of labels and graphs hold, beside brute force and the estimators."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import (
    HMM,
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    MultiLabelCRF,
    NaiveBayes,
    TwoStageCRF,
    metrics,
)
from chordal.explore import page
from chordal.explore._links import links_of

from . import makers
from .conftest import unpacked


def marginals_of(blocks):
    """Of every variable, the probabilities that the page has by the names of labels."""
    labels, columns = blocks["summary"][0]["labels"], blocks["details-0"][1]
    starts = np.concatenate([[0], np.cumsum(columns["counts"], dtype=np.int64)])
    return [
        {
            labels[k]: np.exp(cost / -1000.0)
            for k, cost in zip(columns["labels"][a:b], columns["costs"][a:b], strict=True)
        }
        for a, b in pairwise(starts)
    ]


def test_rows_of_a_classifier():
    model, (X, y) = makers.classifier(), makers.table(seed=2)
    blocks = unpacked(page(model, X, y))
    facts, columns = blocks["summary"][0], blocks["list"][1]
    assert (facts["kind"], facts["labels"]) == ("row", list("abc"))
    chances = model.predict_proba(X)
    gold = [list("abc").index(own) for own in y]
    np.testing.assert_allclose(columns["loss"], -np.log(chances[np.arange(150), gold]), rtol=1e-5)
    np.testing.assert_allclose(columns["confidence"], chances.max(axis=1), rtol=1e-6)
    ranked = np.sort(chances, axis=1)
    np.testing.assert_allclose(columns["margin"], ranked[:, -1] - ranked[:, -2], rtol=1e-5)
    assert facts["figures"]["n_right"] == (model.predict(X) == y).sum()
    cells = {(a, b): n for a, b, n in facts["figures"]["confusion"]}
    counts = metrics.confusion_matrix([y], [model.predict(X)], labels=list("abc")).counts
    assert cells == {(a, b): n for (a, b), n in np.ndenumerate(counts) if n}
    for own, row in zip(marginals_of(blocks), chances, strict=True):
        np.testing.assert_allclose([own[label] for label in "abc"], row, rtol=1e-3)


def test_sparse_rows_and_named_columns():
    sparse, pandas = pytest.importorskip("scipy.sparse"), pytest.importorskip("pandas")
    X = np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3], [1, 0, 0]])
    model = CRFClassifier().fit(sparse.csr_array(X), list("abca"))
    blocks = unpacked(page(model, sparse.coo_array(X), list("abca"), tokens=["one"] * 4))
    names, columns = blocks["list"]
    assert names["features"] == ["x0", "x1", "x2"]
    assert columns["feature_counts"].tolist() == [1, 1, 1, 1]
    assert columns["feature_ids"].tolist() == [0, 1, 2, 0]
    assert names["texts"] == ["one"] * 4
    frame = pandas.DataFrame(X, columns=["red", "green", "blue"])
    named = CRFClassifier().fit(frame, list("abca"))
    blocks = unpacked(page(named, frame, list("abca")))
    assert blocks["weights"][0]["node"] == ["red", "green", "blue"]
    assert blocks["list"][0]["features"] == ["red", "green", "blue"]


def test_true_classes_that_are_unknown_or_missing():
    model, (X, y) = makers.classifier(), makers.table(n=3)
    blocks = unpacked(page(model, X, [y[0], "new", None]))
    assert blocks["summary"][0]["labels"] == [*"abc", "new"]
    assert blocks["list"][1]["gold"].tolist()[1:] == [3, 4]  # 4: not observed
    assert blocks["list"][1]["loss"][1] == np.inf
    assert np.isnan(blocks["list"][1]["loss"][2])


def test_naive_bayes_is_shown_as_a_classifier():
    X, y = makers.table()
    model = NaiveBayes().fit(X, y)
    blocks = unpacked(page(model, X, y))
    assert blocks["summary"][0]["kind"] == "row"
    scores = blocks["rows-0"][1]["scores"].reshape(-1, 3)
    explained = np.flatnonzero(blocks["list"][1]["explained"])
    logs = np.log(model.predict_proba(X[explained]))
    np.testing.assert_allclose(scores - scores[:, :1], logs - logs[:, :1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("as_sets", [True, False])
def test_rows_of_labels(as_sets):
    model, (X, y) = makers.label_model(), makers.label_rows(n=30)
    names = model.label_names_.tolist()
    matrix = np.array([[int(name in own) for name in names] for own in y])
    blocks = unpacked(page(model, X, y if as_sets else matrix))
    facts, columns = blocks["summary"][0], blocks["list"][1]
    assert facts["labels"] == [text for name in names for text in (f"no {name}", name)]
    np.testing.assert_array_equal(columns["gold"].reshape(-1, 3) % 2, matrix)
    np.testing.assert_array_equal(columns["predicted"].reshape(-1, 3) % 2, model.predict(X))
    found = marginals_of(blocks)
    for i, x in enumerate(X[:8]):
        every, chances = makers.enumerated(model, x)
        present = [chances[every[:, j] == 1].sum() for j in range(3)]
        own = found[3 * i : 3 * i + 3]
        np.testing.assert_allclose([own[j][names[j]] for j in range(3)], present, rtol=2e-3)
        true = np.where(matrix[i], present, 1 - np.array(present))
        np.testing.assert_allclose(columns["loss"][i], -np.log(true).mean(), rtol=1e-4)


@pytest.mark.parametrize(
    ("maker", "data"),
    [
        (makers.graph_model, lambda: makers.rings(12)),
        (makers.typed_model, lambda: makers.texts(12)),
        (makers.template_model, lambda: (makers.SENTENCES, makers.TAGS)),
    ],
)
def test_graphs_by_brute_force(maker, data):
    model, (X, y) = maker(), data()
    blocks = unpacked(page(model, X, y))
    facts, columns = blocks["summary"][0], blocks["list"][1]
    found, at = marginals_of(blocks), 0
    details, path, place = blocks["details-0"][1], 0, 0
    for i, x in enumerate(X):
        every, chances = makers.enumerated(model, x)
        n, best = every.shape[1], every[np.argsort(-chances, kind="stable")]
        firsts = [max(f for _, f, _ in facts["sets"] if f <= p) for p in columns["predicted"]]
        local = columns["predicted"][at : at + n].astype(int) - firsts[at : at + n]
        np.testing.assert_array_equal(local, best[0])
        for v in range(n):
            for k in range(every[:, v].max() + 1):
                p = chances[every[:, v] == k].sum()
                name = facts["labels"][firsts[at + v] + k]
                np.testing.assert_allclose(found[at + v][name], p, rtol=2e-3, atol=1e-6)
        true = [found[at + v][facts["labels"][columns["gold"][at + v]]] for v in range(n)]
        np.testing.assert_allclose(columns["loss"][i], -np.log(true).mean(), atol=2e-3)
        k = int(details["k"][i])
        np.testing.assert_allclose(
            np.exp(details["chances"][path : path + k]), -np.sort(-chances)[:k], rtol=1e-4
        )
        labels = details["paths"][place : place + k * n].reshape(k, n).astype(int)
        np.testing.assert_array_equal(labels[0] - firsts[at : at + n], best[0])
        path, place, at = path + k, place + k * n, at + n
    assert at == len(columns["predicted"])


@pytest.mark.parametrize(
    ("maker", "X"),
    [
        (makers.graph_model, makers.rings(5)[0]),
        (makers.typed_model, makers.texts(5)[0]),
        (makers.template_model, makers.SENTENCES),
        (makers.label_model, makers.label_rows(5)[0]),
    ],
)
def test_links_are_columns_of_the_tables(maker, X):
    potentials = maker().potentials(X)
    structure = potentials.structure
    rng = np.random.default_rng(0)
    labels = np.array([rng.integers(n) for n in structure.label_counts])
    links = links_of(potentials, labels)
    member = 0
    for c in range(structure.n_cliques):
        scope = structure.scope(c)
        i = int(np.searchsorted(structure.clique_offsets, c, side="right")) - 1
        for v in scope:
            at = tuple(slice(None) if u == v else labels[u] for u in scope)
            own = links.scores[links.starts[member] : links.starts[member + 1]]
            np.testing.assert_array_equal(own, potentials.table(c)[at])
            assert links.members[member] == v - structure.variable_offsets[i]
            member += 1
    assert member == len(links.members)


def test_names_and_positions_of_nodes():
    model, (X, y) = makers.graph_model(), makers.rings(3)
    names = [[f"n{i}{k}" for k in range(len(own))] for i, own in enumerate(y)]
    places = [np.arange(2.0 * len(own)).reshape(-1, 2) for own in y]
    blocks = unpacked(page(model, X, y, tokens=names, positions=places))
    listed = np.array(blocks["list"][0]["names"])[blocks["list"][1]["tokens"]]
    assert listed.tolist() == [name for own in names for name in own]
    np.testing.assert_array_equal(
        blocks["details-0"][1]["positions"].reshape(-1, 2), np.concatenate(places)
    )
    assert not blocks["summary"][0]["numbered"]
    assert unpacked(page(model, X, y))["summary"][0]["numbered"]
    texts, labels = makers.texts(2)
    blocks = unpacked(page(makers.typed_model(), texts, labels))
    word = next(iter(texts[0][0]["word"][0]))
    assert blocks["list"][0]["names"][0] == word
    assert "text 0" in blocks["list"][0]["names"]


def test_a_graph_without_exact_best_labellings_has_none():
    rng = np.random.default_rng(0)
    n = 30
    index = np.arange(n * n).reshape(n, n)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    y = (np.arange(n * n) // n < n // 2).astype(int)
    x = (y[:, None] + 0.5 * rng.normal(size=(n * n, 1)), np.concatenate([across, down]))
    model = GraphCRF(l2=1.0, inference="loopy_bp", objective="pseudo_likelihood").fit([x], [y])
    blocks = unpacked(page(model, [x], [y]))
    assert blocks["details-0"][1]["k"].tolist() == [0]
    assert blocks["summary"][0]["figures"]["n_variables"] == n * n


def test_models_that_hold_a_crf():
    X = [np.array([[0.1], [0.9], [0.4]]), np.array([[0.2], [0.8]])] * 5
    y = [["a", "b", "a"], ["a", "b"]] * 5
    for model in (TwoStageCRF(random_state=0).fit(X, y), HMM("gaussian").fit(X, y)):
        blocks = unpacked(page(model, X, y))
        assert blocks["summary"][0]["kind"] == "text"
        assert blocks["list"][1]["explained"].all()


def test_networks_on_grids_and_graphs():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from chordal.torch import NeuralCRF

    X, y = makers.rings(6)
    model = NeuralCRF("mlp", hidden=4, max_iter=2, crf=GraphCRF(tables="full"), random_state=0)
    plain = [(nodes, edges) for nodes, edges, _ in X]
    blocks = unpacked(page(model.fit(plain, y), plain, y))
    assert blocks["summary"][0]["kind"] == "graph"
    assert blocks["list"][1]["explained"].all()
    np.testing.assert_allclose(
        blocks["rows-0"][1]["scores"], model.potentials(plain).unary, rtol=1e-4, atol=1e-5
    )
    images = [np.zeros((2, 3, 1)), np.ones((2, 3, 1))]
    labels = [np.zeros((2, 3), dtype=int), np.ones((2, 3), dtype=int)]
    model = NeuralCRF("mlp", hidden=4, max_iter=2, crf=GridCRF(), random_state=0)
    blocks = unpacked(page(model.fit(images, labels), images, labels))
    assert blocks["summary"][0]["kind"] == "grid"


def test_the_model_that_a_search_chose():
    GridSearchCV = pytest.importorskip("sklearn.model_selection").GridSearchCV
    X, y = makers.table(n=40)
    search = GridSearchCV(CRFClassifier(), {"l2": [0.1, 1.0]}, cv=2).fit(X, y)
    assert unpacked(page(search, X, y))["summary"][0]["model"] == "CRFClassifier"


def test_what_cannot_be_shown():
    X, y = makers.table(n=6)
    with pytest.raises(ValueError, match="explore shows models that predict labels"):
        page(MatchingModel(lambda a, b: np.zeros((1, 1, 1))), [])
    for model in (CRFClassifier(), GraphCRF(), HMM(), ChainCRF()):
        with pytest.raises(ValueError, match="fit"):
            page(model, X)
    model = makers.classifier()
    with pytest.raises(ValueError, match="one label per row"):
        page(model, X, y[:-1])
    with pytest.raises(ValueError, match="one text per row"):
        page(model, X, y, tokens=["a"])
    with pytest.raises(ValueError, match="positions are of nodes of graphs"):
        page(model, X, positions=[])
    with pytest.raises(ValueError, match="nothing to explore"):
        page(model, X[:0])
    with pytest.raises(ValueError, match="needs rows of 9 numbers"):
        page(model, X, image_shape=(3, 3))
    graphs, labels = makers.rings(2)
    with pytest.raises(ValueError, match=r"positions\[0\] must be finite numbers"):
        page(makers.graph_model(), graphs, positions=[np.zeros((2, 2)), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="image_shape is of rows"):
        page(makers.graph_model(), graphs, image_shape=(1, 3))
    with pytest.raises(TypeError, match="dict from type to labels"):
        page(makers.typed_model(), *[own[:1] for own in (makers.texts(1)[0], labels)])
    with pytest.raises(ValueError, match="does not know"):
        page(makers.label_model(), makers.label_rows(1)[0], [{"moon"}])
    with pytest.raises(ValueError, match=r"matrix \[1, 3\] of 0 and 1"):
        page(makers.label_model(), makers.label_rows(1)[0], [[1, 0]])
    grids = [np.zeros((2, 2, 1)), np.ones((2, 2, 1))]
    cut = GridCRF(objective="perceptron", inference="max_flow", tables="potts")
    cut.fit(grids, [np.zeros((2, 2), dtype=int), np.ones((2, 2), dtype=int)])
    with pytest.raises(ValueError, match="probabilities of labels, and this model gives none"):
        page(cut, grids)


def test_attributes_of_rows_are_capped():
    model, (X, y) = makers.label_model(), makers.label_rows(20)
    every = unpacked(page(model, X, y))
    assert every["list"][1]["explained"].all()
    few = unpacked(page(model, X, y, max_attributes=100))
    n = int(few["list"][1]["explained"].sum())
    assert 0 < n < 20
    assert len(few["rows-0"][1]["scores"]) == 6 * n


def test_nodes_of_every_form():
    sparse = pytest.importorskip("scipy.sparse")
    none = np.zeros((0, 2), dtype=np.int64)
    first = {"w": "red", "v": np.array([1.0, 2.0])}
    X = [([first, {"w": "blue", "v": np.array([0.0, 1.0])}], np.array([(0, 1)])), ([first], none)]
    y = [["A", "B"], ["B"]]
    blocks = unpacked(page(GraphCRF().fit(X, y), X, y))
    names = blocks["weights"][0]["node"]
    assert names == ["nodes: w:red", "nodes: w:blue", "vectors: v:0", "vectors: v:1"]
    assert blocks["list"][0]["names"] == ["red", "blue"]
    X = [(sparse.csr_array(np.eye(3)), np.array([(0, 1), (1, 2)]))]
    model = GraphCRF().fit(X, [["a", "b", "a"]])
    blocks = unpacked(page(model, X, [["a", None, "a"]]))
    assert blocks["list"][0]["names"] == ["node 0", "node 1", "node 2"]
    assert blocks["summary"][0]["figures"]["n_observed"] == 2


def test_graphs_without_some_type_and_labels_without_links():
    X, y = makers.texts(2)
    X[0] = ({"word": X[0][0]["word"]}, {("word", "word"): X[0][1]["word", "word"]})
    y[0] = {"word": y[0]["word"]}
    blocks = unpacked(page(makers.typed_model(), X, y))
    assert blocks["list"][1]["sizes"].tolist() == [len(y[0]["word"]), len(y[1]["word"]) + 1]
    rows, labels = makers.label_rows(10)
    model = MultiLabelCRF(structure="independent").fit(rows, labels)
    blocks = unpacked(page(model, rows, labels))
    assert blocks["rows-0"][1]["links"].size == 0
    assert blocks["list"][1]["explained"].all()


@pytest.mark.parametrize(("largest", "scale"), [(0.5, 1), (1, 1), (16, 16), (200, 255), (900, 900)])
def test_images_are_drawn_on_the_scale_of_their_numbers(largest, scale):
    X = np.array([[0.0, largest, largest / 2, 0.0], [largest / 4, 0.0, 0.0, largest]])
    html = page(CRFClassifier().fit(X, ["a", "b"]), X, image_shape=(2, 2))
    shades = unpacked(html)["list"][1]["pixels"]
    np.testing.assert_array_equal(shades, np.rint(X.ravel() * (255 / scale)))
