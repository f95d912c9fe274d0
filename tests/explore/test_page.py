"""What stands in a page, beside computations of another kind."""

import itertools
import math
import re
from importlib.resources import files

import numpy as np
import pytest

from chordal import ChainCRF, GridCRF, metrics
from chordal.explore import page
from chordal.text import Items

from .conftest import unpacked


def enumerated(model, x):
    """Every labelling of a sequence with its probability, by its score alone."""
    potentials = model.potentials([x])
    n, size = len(model.classes_), len(x)
    every = list(itertools.product(range(n), repeat=size))
    scores = np.array([potentials.score(np.array(labels))[0] for labels in every])
    chances = np.exp(scores - scores.max())
    return every, chances / chances.sum()


def test_predictions_losses_and_margins_are_those_of_all_labellings(tagged):
    model, X, y, _, html = tagged
    summary, (_, columns) = unpacked(html)["summary"][0], unpacked(html)["list"]
    classes = model.classes_.tolist()
    assert summary["labels"] == classes
    offsets = np.concatenate([[0], np.cumsum(columns["sizes"], dtype=np.int64)])
    chosen = [i for i in range(len(X)) if len(X[i]) <= 4][:20]
    for i in chosen:
        every, chances = enumerated(model, X[i])
        order = np.argsort(-chances)
        own = slice(offsets[i], offsets[i + 1])
        assert tuple(columns["predicted"][own]) == every[order[0]]
        gold = tuple(classes.index(label) for label in y[i])
        assert tuple(columns["gold"][own]) == gold
        np.testing.assert_allclose(
            columns["loss"][i], -math.log(chances[every.index(gold)]), rtol=1e-5
        )
        np.testing.assert_allclose(
            columns["margin"][i], chances[order[0]] - chances[order[1]], rtol=1e-4, atol=1e-6
        )
        best = every[order[0]]
        marginals = [
            sum(c for e, c in zip(every, chances, strict=True) if e[t] == best[t])
            for t in range(len(best))
        ]
        np.testing.assert_allclose(columns["confidence"][i], min(marginals), rtol=1e-5)


def details_of(html, i):
    """Marginals by position, and best labellings, of an example."""
    blocks = unpacked(html)
    sizes = blocks["list"][1]["sizes"].astype(int)
    chunks = blocks["summary"][0]["chunks"]
    k = max(c for c, first in enumerate(chunks) if first <= i)
    _, columns = blocks[f"details-{k}"]
    before = int(sizes[chunks[k] : i].sum())
    starts = np.concatenate([[0], np.cumsum(columns["counts"], dtype=np.int64)])
    tables = []
    for t in range(before, before + sizes[i]):
        own = slice(starts[t], starts[t + 1])
        tables.append(
            dict(
                zip(
                    columns["labels"][own].tolist(),
                    np.exp(columns["costs"][own] / -1000.0),
                    strict=True,
                )
            )
        )
    counts = columns["k"][: i - chunks[k] + 1].astype(int)
    place = int((counts[:-1] * sizes[chunks[k] : i]).sum())
    paths = columns["paths"][place : place + counts[-1] * sizes[i]].reshape(counts[-1], sizes[i])
    first = int(counts[:-1].sum())
    return tables, paths, columns["chances"][first : first + counts[-1]]


def test_marginals_and_best_labellings_are_those_of_all_labellings(tagged):
    model, X, _, _, html = tagged
    for i in [i for i in range(len(X)) if 2 <= len(X[i]) <= 4][:10]:
        every, chances = enumerated(model, X[i])
        tables, paths, logs = details_of(html, i)
        order = np.argsort(-chances)[:3]
        assert [tuple(path) for path in paths] == [every[k] for k in order]
        np.testing.assert_allclose(np.exp(logs), chances[order], rtol=1e-5)
        for t, table in enumerate(tables):
            true = [
                sum(c for e, c in zip(every, chances, strict=True) if e[t] == a)
                for a in range(len(model.classes_))
            ]
            asked = {a for a, p in enumerate(true) if p >= 0.01}
            assert asked <= set(table)
            for a, p in table.items():
                np.testing.assert_allclose(p, true[a], rtol=1e-3)


def test_figures_are_those_of_the_metrics(tagged):
    model, X, y, _, html = tagged
    found = model.predict(X)
    figures = unpacked(html)["summary"][0]["figures"]
    report = metrics.classification_report(y, found)
    classes = model.classes_.tolist()
    for label, precision, recall, f1, support in zip(report.labels, *report.scores, strict=True):
        row = figures["classes"][classes.index(label)]
        np.testing.assert_allclose(row[3:], [precision, recall, f1], atol=1e-6)
        assert row[0] == support
    table = metrics.confusion_matrix(y, found, labels=classes)
    cells = np.zeros_like(table.counts)
    for a, b, n in figures["confusion"]:
        cells[a, b] = n
    np.testing.assert_array_equal(cells, table.counts)
    np.testing.assert_allclose(
        figures["n_right"] / figures["n_observed"], metrics.token_accuracy(y, found)
    )
    assert figures["n_right_examples"] == sum(a == list(b) for a, b in zip(y, found, strict=True))
    assert figures["chunks"] is None
    assert sum(n for n, _, _ in figures["calibration"]) == sum(map(len, y))


def test_spans_are_scored_as_conlleval_does():
    X = [[["w=in"], ["w=New"], ["w=York"]], [["w=York"], ["w=in"]]] * 5
    y = [["O", "B-LOC", "I-LOC"], ["B-LOC", "O"]] * 5
    model = ChainCRF(l2=0.1).fit(X, y)
    true = [["O", "B-LOC", "I-LOC"], ["O", "O"]]
    figures = unpacked(page(model, X[:2], true))["summary"][0]["figures"]
    scores = metrics.chunk_scores(true, model.predict(X[:2]))
    assert figures["chunks"]["types"] == [["LOC", 1, 2, 1, 0.5, 1.0, round(scores.overall.f1, 6)]]


def test_unknown_and_missing_labels():
    X = [[["w=a"], ["w=b"]], [["w=b"]], [["w=a"]]]
    model = ChainCRF(l2=0.1).fit(X[:2], [["A", "B"], ["B"]])
    blocks = unpacked(page(model, X, [["A", "new"], [None], ["A"]]))
    facts, columns = blocks["summary"][0], blocks["list"][1]
    assert facts["labels"] == ["A", "B", "new"]
    assert columns["gold"].tolist() == [0, 2, 3, 0]  # 3: not observed
    assert columns["loss"][0] == np.inf
    assert np.isnan(columns["loss"][1])
    np.testing.assert_allclose(
        columns["loss"][2], -model.log_likelihood(X[2:], [["A"]])[0], rtol=1e-6
    )
    assert facts["figures"]["n_observed"] == 3


def test_without_labels():
    X = [[["w=a"], ["w=b"]], [["w=b"]]]
    model = ChainCRF(l2=0.1).fit(X, [["A", "B"], ["B"]])
    blocks = unpacked(page(model, X))
    assert blocks["summary"][0]["figures"]["predicted"] == [1, 2]
    assert "gold" not in blocks["list"][1]
    assert "loss" not in blocks["list"][1]


def test_attributes_are_capped_by_loss():
    X = [[["w=a", "x", "y"]] * n for n in (1, 2, 3, 4)]
    model = ChainCRF(l2=0.1).fit(X, [["A"], ["B"] * 2, ["A"] * 3, ["B"] * 4])
    y = [["A"], ["A"] * 2, ["B"] * 3, ["A"] * 4]
    html = page(model, X, y, max_attributes=15)
    columns = unpacked(html)["list"][1]
    expected, total = set(), 0
    for i in np.argsort(-columns["loss"]):
        total += 3 * len(X[i])
        if total <= 15:
            expected.add(int(i))
    assert set(np.flatnonzero(columns["explained"]).tolist()) == expected
    assert 0 < len(expected) < 4
    assert unpacked(page(model, X, y))["list"][1]["explained"].all()


def test_grids_have_marginals_of_every_label():
    rng = np.random.default_rng(0)
    y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(4)]
    X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    model = GridCRF(l2=0.1).fit(X, y)
    html = page(model, X, y)
    blocks = unpacked(html)
    columns = blocks["details-0"][1]
    assert blocks["summary"][0]["kind"] == "grid"
    table = np.concatenate([m.reshape(-1, 2) for m in model.predict_marginals(X)])
    np.testing.assert_allclose(np.exp(columns["costs"].reshape(-1, 2) / -1000.0), table, rtol=1e-3)
    gold = np.concatenate([own.ravel() for own in y])
    losses = -np.log(table[np.arange(48), gold]).reshape(4, 12).mean(axis=1)
    np.testing.assert_allclose(blocks["list"][1]["loss"], losses, rtol=1e-5)
    assert columns["pixels"].shape == (48,)
    assert blocks["list"][1]["heights"].tolist() == [3] * 4


def test_an_ignored_label_is_not_observed():
    y = [np.array([[0, 1], [9, 1]])]
    X = [np.arange(4.0).reshape(2, 2, 1)]
    model = GridCRF(l2=0.1, ignore_label=9).fit(X, y)
    blocks = unpacked(page(model, X, y))
    assert blocks["summary"][0]["labels"] == ["0", "1"]
    assert blocks["list"][1]["gold"].tolist() == [0, 1, 2, 1]
    assert blocks["summary"][0]["figures"]["n_observed"] == 3


def test_the_same_data_give_the_same_page(tagged):
    model, X, y, tokens, html = tagged
    assert page(model, X, y, tokens=tokens, title="Tags") == html


def test_bad_arguments(tagged):
    model, X, y, tokens, _ = tagged
    with pytest.raises(ValueError, match="there is nothing to explore"):
        page(model, [])
    with pytest.raises(ValueError, match="y must have one entry per example"):
        page(model, X, y[:-1])
    with pytest.raises(ValueError, match=r"y\[0\] must have a label for each position of X\[0\]"):
        page(model, X, [y[0] + ["N"], *y[1:]])
    for data in ("a path", Items.parsed(b"N\tw=a\n", at_end=True)[0]):
        with pytest.raises(ValueError, match="explore shows examples in memory"):
            page(model, data)
    with pytest.raises(ValueError, match="one true label per variable"):
        page(model, X[:1], [[{"N", "V"}] * len(X[0])])
    with pytest.raises(ValueError, match=r"tokens must have one list per example \(300\), got 299"):
        page(model, X, y, tokens=tokens[:-1])
    with pytest.raises(ValueError, match=r"tokens\[1\] must have a string for each"):
        page(model, X, y, tokens=[tokens[0], [], *tokens[2:]])
    with pytest.raises(ValueError, match="k_best must be"):
        page(model, X, y, k_best=0)
    arrays = [np.eye(3)]
    dense = ChainCRF().fit(arrays, [["a", "b", "a"]])
    with pytest.raises(ValueError, match="needs rows of 4 numbers"):
        page(dense, arrays, image_shape=(2, 2))
    with pytest.raises(TypeError, match=r"image_shape must be \(height, width\), got 3"):
        page(dense, arrays, image_shape=3)
    with pytest.raises(ValueError, match="width of image_shape must be an integer"):
        page(dense, arrays, image_shape=(1, 3.0))


def test_sizes_of_letters_may_be_numbers_of_numpy():
    arrays, labels = [np.eye(3)], [["a", "b", "a"]]
    model = ChainCRF().fit(arrays, labels)
    expected = page(model, arrays, labels, image_shape=(1, 3))
    assert page(model, arrays, labels, image_shape=tuple(np.array([1, 3]))) == expected


def brightness(colour):
    """The relative luminance of red, green and blue from 0 to 1 (WCAG 2)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([brightness(one), brightness(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_every_colour_behind_it(theme):
    css = (files("chordal.explore") / "page" / "1-base.css").read_text(encoding="utf-8")
    found = re.findall(r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", css)
    own = {
        name: np.array([int(pair[theme][k : k + 2], 16) for k in (0, 2, 4)]) / 255
        for name, *pair in found
    }
    for behind in ("paper", "card", "sunk", "for-behind", "against-behind"):
        assert contrast(own["ink"], own[behind]) >= 4.5, behind
    chosen = 0.88 * own["paper"] + 0.12 * own["accent"]  # a word that is selected
    for name in [f"c{k}" for k in range(8)]:  # labels below words, on a tint of their colour
        chip = 0.87 * chosen + 0.13 * own[name]
        assert contrast(own[name], chip) >= 4.5, name
    assert contrast(own["bad"], chosen) >= 4.5
