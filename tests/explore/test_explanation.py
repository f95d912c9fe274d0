"""What the browser computes: contributions beside sums over all labellings in Python."""

import itertools

import numpy as np
import pytest

from chordal import HMM, ChainCRF, FeatureTemplate, GridCRF
from chordal.emissions.categorical import Categorical
from chordal.explore import page
from chordal.text import Columns

from .conftest import until

LABELS = ["A", "B", "C"]


def sums(unary, tables, t, n):
    """Of each label at t: log Σ over labels before it, and after it, by enumeration."""
    size = len(unary)

    def score(labels, first):
        own = sum(unary[first + k][a] for k, a in enumerate(labels))
        return own + sum(
            tables[first + k][a, b] for k, (a, b) in enumerate(itertools.pairwise(labels))
        )

    def log_sum(values):
        return float(np.logaddexp.reduce(values))

    left, right = np.zeros(n), np.zeros(n)
    for a in range(n):
        if t:
            every = itertools.product(range(n), repeat=t)
            left[a] = log_sum([score(p, 0) + tables[t - 1][p[-1], a] for p in every])
        if t < size - 1:
            every = itertools.product(range(n), repeat=size - 1 - t)
            right[a] = log_sum([score(p, t + 1) + tables[t][a, p[0]] for p in every])
    return left, right


def read_bars(tab):
    tab.wait_for_selector(".odds")
    if (
        tab.locator("#all-contributions").count()
        and tab.inner_text("#all-contributions") != "Fewer"
    ):
        tab.click("#all-contributions")
        until(tab, "document.querySelector('#all-contributions').textContent === 'Fewer'")
    bars = tab.eval_on_selector_all(
        ".bars tr",
        "rows => rows.map(row => [row.querySelector('bdi').textContent, row.dataset.kind,"
        " Number(row.dataset.value)])",
    )
    odds = tab.eval_on_selector(
        ".odds", "n => [n.dataset.total, n.dataset.p, n.dataset.q].map(Number)"
    )
    return bars, odds


def explain_all(tab, size, n):
    """(t, a, b) → bars and odds, through the page's own controls."""
    for t in range(size):
        tab.click(f".token[data-position='{t}']")
        for a in range(n):
            tab.select_option("#this-label", str(a))
            b = (a + 1) % n
            tab.select_option("#that-label", str(b))
            until(tab, f"document.querySelector('#that-label').value === '{b}'")
            yield t, a, b, *read_bars(tab)


def check(tab, model, x, potentials, contributions):
    """Bars of example 0, whose potentials are given, against enumeration."""
    n = len(model.classes_)
    unary = potentials.unary.reshape(-1, n)
    size = len(unary)
    starts = potentials.table_offsets[potentials.table_of_clique]
    tables = [potentials.tables[s : s + n * n].reshape(n, n) for s in starts]
    marginals = np.asarray(model.predict_marginals(x)[0])
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    for t, a, b, bars, (total, p, q) in explain_all(tab, size, n):
        left, right = sums(unary, tables, t, n)
        np.testing.assert_allclose(
            total, np.log(marginals[t, a] / marginals[t, b]), rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose([p, q], marginals[t, [a, b]], rtol=1e-5)
        np.testing.assert_allclose(sum(value for *_, value in bars), total, rtol=1e-9, atol=1e-9)
        found = {name: value for name, _, value in bars}
        before = found.pop("labels before (incoming message)", 0.0)
        after = found.pop("labels after (outgoing message)", 0.0)
        np.testing.assert_allclose(before, left[a] - left[b], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(after, right[a] - right[b], rtol=1e-5, atol=1e-5)
        expected = {k: v for k, v in contributions(t, a, b).items() if abs(v) > 1e-12}
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def weights_by_name(model):
    labels = model.classes_.tolist()
    table = {}
    for name, label, weight in model.top_features(10**6):
        table.setdefault(name, np.zeros(len(labels)))[labels.index(label)] = weight
    return table


def random_sequences(n, seed=0):
    rng = np.random.default_rng(seed)
    X = [
        [{f"w={rng.integers(5)}": 1.0, "number": float(rng.normal())} for _ in range(4)]
        for _ in range(n)
    ]
    return X, [[str(label) for label in rng.choice(LABELS, 4)] for _ in range(n)]


def test_attributes_with_values_intercepts_and_ends(shown):
    X, y = random_sequences(30)
    model = ChainCRF(l2=0.3, ends=True, fit_intercept=True).fit(X, y)
    table = weights_by_name(model)

    def contributions(t, a, b):
        out = {name: value * (table[name][a] - table[name][b]) for name, value in X[0][t].items()}
        out["intercept"] = model.intercept_[a] - model.intercept_[b]
        if t == 0:
            out["first position"] = model.start_[a] - model.start_[b]
        if t == 3:
            out["last position"] = model.end_[a] - model.end_[b]
        return out

    check(shown(page(model, X, y)), model, X[:1], model.potentials(X[:1]), contributions)


def test_templates_with_attributes_of_transitions(shown):
    rng = np.random.default_rng(1)
    rows = [[[f"x{rng.integers(3)}", f"p{rng.integers(2)}"] for _ in range(4)] for _ in range(25)]
    y = [[str(label) for label in rng.choice(LABELS, 4)] for _ in rows]
    template = FeatureTemplate("U0:%x[0,0]\nU1:%x[-1,1]\nB0:%x[0,1]\nB\n")
    X = Columns.from_sequences(rows)
    model = ChainCRF(feature_template=template, l2=0.3).fit(X, y)
    assert model.layout_["edge"].rows is not None
    table = weights_by_name(model)

    def contributions(t, a, b):
        names = template.attributes(rows[0])[t]
        return {name: table[name][a] - table[name][b] for name in names if name in table}

    check(shown(page(model, X, y)), model, X[:1], model.potentials(X[:1]), contributions)


def test_letters(shown):
    rng = np.random.default_rng(2)
    X = [rng.integers(0, 2, size=(4, 6)).astype(float) for _ in range(25)]
    y = [[str(label) for label in rng.choice(LABELS, 4)] for _ in X]
    model = ChainCRF(l2=0.3).fit(X, y)

    def contributions(t, a, b):
        return {f"x{k}": X[0][t, k] * (model.coef_[a, k] - model.coef_[b, k]) for k in range(6)}

    tab = shown(page(model, X, y, image_shape=(3, 2)))
    check(tab, model, X[:1], model.potentials(X[:1]), contributions)
    assert tab.locator(".heat canvas").count() == 1


def test_vectors_among_attributes(shown):
    rng = np.random.default_rng(3)
    X = [
        [{f"w={rng.integers(4)}": 1.0, "vec": rng.normal(size=2)} for _ in range(3)]
        for _ in range(25)
    ]
    y = [[str(label) for label in rng.choice(LABELS, 3)] for _ in X]
    model = ChainCRF(l2=0.3).fit(X, y)
    table = weights_by_name(model)

    def contributions(t, a, b):
        values = {f"vec:{k}": v for k, v in enumerate(X[0][t]["vec"])}
        values |= {name: 1.0 for name in X[0][t] if name != "vec"}
        return {name: v * (table[name][a] - table[name][b]) for name, v in values.items()}

    check(shown(page(model, X, y)), model, X[:1], model.potentials(X[:1]), contributions)


def test_models_around_a_chain_show_their_scores(shown):
    rng = np.random.default_rng(4)
    X = [rng.integers(0, 4, size=4).tolist() for _ in range(25)]
    y = [[str(label) for label in rng.choice(LABELS, 4)] for _ in X]
    model = HMM(Categorical()).fit(X, y)
    scores = np.asarray(model.node_scores(X[:1])[0])

    def contributions(t, a, b):
        return {"the model's score of this position": scores[t, a] - scores[t, b]}

    check(shown(page(model, X, y)), model, X[:1], model.potentials(X[:1]), contributions)


def test_grids(shown):
    rng = np.random.default_rng(0)
    y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(5)]
    X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    model = GridCRF(l2=0.1).fit(X, y)
    tab = shown(page(model, X, y))
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    plate = tab.locator("[data-picture='predicted']")
    box = plate.bounding_box()
    table = np.asarray(model.predict_marginals(X[:1])[0])
    for row, column in ((0, 0), (2, 3), (1, 2)):
        plate.click(
            position={"x": (column + 0.5) * box["width"] / 4, "y": (row + 0.5) * box["height"] / 3}
        )
        tab.wait_for_selector(f"text=Pixel at row {row + 1}, column {column + 1}")
        tab.select_option("#this-label", "1")
        tab.select_option("#that-label", "0")
        tab.wait_for_timeout(100)
        bars, (total, p, _) = read_bars(tab)
        own = table[row, column]
        np.testing.assert_allclose(p, own[1], rtol=1e-3)
        np.testing.assert_allclose(total, np.log(own[1] / own[0]), atol=2e-3)
        found = {name: value for name, _, value in bars}
        value = X[0][row, column, 0]
        np.testing.assert_allclose(
            found["x0"], value * (model.coef_[1, 0] - model.coef_[0, 0]), rtol=1e-5
        )
        intercept = model.template_weights("pixels")["intercept"]
        np.testing.assert_allclose(found["intercept"], intercept[1] - intercept[0], rtol=1e-5)
        np.testing.assert_allclose(sum(found.values()), total, atol=1e-9)


@pytest.mark.parametrize("labels", [True, False])
def test_a_capped_page_says_so(shown, labels):
    X, y = random_sequences(6)
    model = ChainCRF(l2=0.3).fit(X, y)
    tab = shown(page(model, X, y if labels else None, max_attributes=20))
    tab.click("#tab-examples")
    tab.select_option("#filter-sort", "loss" if labels else "confidence")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".odds")
    tab.click(".row >> nth=5")
    tab.wait_for_selector(".why .note")
    assert "The page keeps attributes of the 2 examples of" in tab.inner_text(".why .note")
