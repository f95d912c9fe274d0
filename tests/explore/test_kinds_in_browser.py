"""Rows, sets of labels and graphs by real clicks and keys; `explain` says what must come out."""

import numpy as np
import pytest

from chordal import CRFClassifier, GraphCRF, GridCRF, explain
from chordal.explore import page

from . import makers
from .conftest import unpacked, until
from .test_controls import numbers, opened, total
from .test_explanation import read_bars

HOSTILE = ["<script>alert(1)</script>", "__proto__", "\u202edlo", "a & <b>b</b>", "\ud800x"]
SEEN = {"\u202edlo": "⟨U+202E⟩dlo", "\ud800x": "⟨U+D800⟩x"}


@pytest.fixture(scope="module")
def rows():
    """A classifier, rows and their page."""
    model, (X, y) = makers.classifier(), makers.table(seed=2)
    return model, X, y, page(model, X, y, title="Rows")


@pytest.fixture(scope="module")
def graphs():
    model, (X, y) = makers.graph_model(), makers.rings(20)
    return model, X, y, page(model, X, y)


def open_first(tab, number=1):
    tab.click("#tab-examples")
    tab.click(f".row:has-text('#{number}') >> nth=0")
    tab.wait_for_selector(f".detail h2:has-text('Example {number}')")
    tab.wait_for_selector(".odds")


def check_sum(tab, expected):
    """The bars add up to the log-odds, which are those of `explain`."""
    bars, (found, p, q) = read_bars(tab)
    np.testing.assert_allclose(sum(value for _, _, value in bars), found, atol=1e-9)
    np.testing.assert_allclose(found, expected.log_odds, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        [p, q], [expected.probability, expected.rival_probability], atol=1e-4
    )
    return bars


def test_rows_are_explained_as_explain_does(shown, rows):
    model, X, _, html = rows
    tab = shown(html)
    for i in (0, 3):
        open_first(tab, i + 1)
        tab.select_option("#this-label", label="a")
        tab.select_option("#that-label", label="c")
        until(tab, "document.querySelector('#this-label').value === '0'")
        expected = explain(model, X[i], label="a", rival="c")
        bars = check_sum(tab, expected)
        amounts = {own.name: own.amount for own in expected.contributions}
        for name, _, value in bars:
            np.testing.assert_allclose(value, amounts[name], rtol=1e-4, atol=1e-5)


def test_the_table_of_features(shown, rows):
    _, X, _, html = rows
    tab = shown(html)
    open_first(tab, 2)
    tab.wait_for_selector("#table-row")
    names = tab.locator("#table-row tbody td:nth-child(1)").all_inner_texts()
    values = tab.locator("#table-row tbody td:nth-child(2)").all_inner_texts()
    found = {n: float(v.replace("−", "-")) for n, v in zip(names, values, strict=True)}
    assert set(found) == {f"x{k}" for k in range(X.shape[1])}
    np.testing.assert_allclose([found[f"x{k}"] for k in range(4)], X[1], rtol=1e-3)
    tab.click("#table-row th:nth-child(1) button")
    assert tab.locator("#table-row tbody td:nth-child(1)").all_inner_texts() == sorted(names)
    tab.click(".bars .link >> nth=0")
    tab.wait_for_selector("#features")
    assert tab.input_value("#feature-search") in found


def test_filters_and_orders_of_rows(shown, rows):
    model, X, y, html = rows
    found, columns = model.predict(X), unpacked(html)["list"][1]
    tab = shown(html)
    tab.click("#tab-examples")
    assert tab.locator("#filter-contains").count() == 0  # every column of every row is there
    tab.click("#filter-wrong")
    assert total(tab) == int((found != y).sum())
    tab.select_option("#filter-gold", label="a")
    tab.select_option("#filter-predicted", label="b")
    assert total(tab) == int(((y == "a") & (found == "b")).sum())
    tab.click("#clear")
    tab.focus("#filter-confidence")
    tab.keyboard.press("Home")
    for _ in range(60):
        tab.keyboard.press("ArrowRight")
    assert total(tab) == int((columns["confidence"] <= np.float32(0.6)).sum())
    tab.click("#clear")
    values = tab.eval_on_selector_all("#filter-sort option", "own => own.map(o => o.value)")
    assert values == ["order", "loss", "confidence", "margin"]
    keys = {"loss": -columns["loss"], "confidence": columns["confidence"]}
    for name, key in {**keys, "margin": columns["margin"]}.items():
        tab.select_option("#filter-sort", name)
        seen = numbers(tab)
        assert seen == np.argsort(key, kind="stable")[: len(seen)].tolist()
    tab.keyboard.press("1")
    tab.click(".pair >> nth=0")
    tab.wait_for_selector("#examples")
    a, b, n = max(
        (own for own in unpacked(html)["summary"][0]["figures"]["confusion"] if own[0] != own[1]),
        key=lambda own: own[2],
    )
    assert total(tab) == n
    assert (y[opened(tab)], found[opened(tab)]) == ("abc"[a], "abc"[b])


def test_rows_that_contain_a_feature_or_a_word(shown):
    X = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [1, 0, 0, 1]])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["red", "green", "blue", "Dark"])
    model = CRFClassifier().fit(frame, list("abca"))
    tab = shown(page(model, frame, list("abca")))
    tab.keyboard.press("/")
    until(tab, "document.activeElement.id === 'filter-contains'")
    for query, n in (("RED", 2), ("red dark", 1), ("r", 3), ("none", 0)):
        tab.fill("#filter-contains", query)
        assert total(tab) == n, query
    texts = ["a red rose", "green grass", "blue sky", "red at night"]
    tab = shown(page(model, frame, list("abca"), tokens=texts))
    tab.click("#tab-examples")
    tab.fill("#filter-contains", "rose red")
    assert total(tab) == 1
    tab.click(".row >> nth=0")
    assert tab.inner_text(".rowtext") == texts[0]


def test_rows_that_are_images(shown):
    X, y = makers.table(n=20)
    model = makers.classifier()
    tab = shown(page(model, X, y, image_shape=(2, 2)), width=390, scheme="dark")
    tab.click("#tab-examples")
    assert tab.locator(".row canvas").count() >= 10
    open_first(tab)
    assert tab.locator(".rowimage canvas").count() == 1
    assert tab.locator(".heat canvas").count() == 1
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_sets_of_labels(shown):
    model, (X, y) = makers.label_model(), makers.label_rows(40)
    names, found = model.label_names_.tolist(), model.predict(X)
    true = np.array([[int(name in own) for name in names] for own in y])
    tab = shown(page(model, X, y))
    cells = tab.locator("#table-labels tbody td:nth-child(1)").all_inner_texts()
    assert sorted(cells) == names
    missed = (true == 1) & (found == 0)
    worst = names[int(missed.sum(axis=0).argmax())]
    tab.click(f"#table-labels tbody bdi:text-is('{worst}')")
    tab.wait_for_selector("#examples")
    assert total(tab) == int(missed[:, names.index(worst)].sum())
    tab.keyboard.press("c")
    open_first(tab, 5)
    for j, name in enumerate(names):
        tab.click(f".token[data-position='{j}']")
        until(tab, f"document.querySelector('.quoted').textContent === '{name}'")
        tab.select_option("#this-label", label=name)
        tab.select_option("#that-label", label=f"no {name}")
        expected = explain(model, X[4], name, label=1, rival=0, odds="conditional")
        bars = check_sum(tab, expected)
        links = sorted(own.amount for own in expected.contributions if own.kind == "link")
        seen = sorted(value for _, kind, value in bars if kind == "message")
        np.testing.assert_allclose(seen, links, rtol=1e-4, atol=1e-5)
    tab.click("#tab-transitions")
    assert tab.locator("[data-table='together'] td.for, [data-table='together'] td.against").count()


def test_graphs_are_explained_as_explain_does(shown, graphs):
    model, X, _, html = graphs
    tab = shown(html)
    for i, t in ((0, 0), (2, 3), (4, 1)):
        open_first(tab, i + 1)
        tab.click(f"svg[data-picture='predicted'] [data-node='{t}']")
        until(tab, f"document.querySelector('.quoted').textContent === 'node {t}'")
        tab.select_option("#this-label", label="b")
        tab.select_option("#that-label", label="a")
        expected = explain(model, X[i], t, label="b", rival="a", odds="conditional")
        bars = check_sum(tab, expected)
        links = sorted(own.amount for own in expected.contributions if own.kind == "link")
        seen = sorted(value for _, kind, value in bars if kind == "message")
        np.testing.assert_allclose(seen, links, rtol=1e-4, atol=1e-5)


def test_moving_through_a_graph(shown, graphs):
    model, X, y, html = graphs
    tab = shown(html)
    open_first(tab)
    chosen = "document.querySelector('.quoted').textContent === 'node {}'"
    tab.click("#node-0")
    until(tab, chosen.format(0))
    tab.focus(".nodes .list")
    for key, t in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", len(y[0]) - 1)):
        tab.keyboard.press(key)
        until(tab, chosen.format(t))
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "nodes"
    tab.click("#tab-examples")
    tab.keyboard.press("ArrowLeft")
    until(tab, chosen.format(len(y[0]) - 2))
    near = sorted({int(b if a == 2 else a) for a, b in X[0][1].tolist() if 2 in (a, b)})
    tab.click("#node-2")
    until(tab, chosen.format(2))
    listed = tab.eval_on_selector_all("[data-neighbour]", "b => b.map(n => +n.dataset.neighbour)")
    assert listed == near
    tab.click(f"[data-neighbour='{near[0]}']")
    until(tab, chosen.format(near[0]))
    assert tab.locator(".graphs .edge").count() == 2 * len(X[0][1])
    assert tab.locator(".paths li").count() == 3
    tab.click(".rank >> nth=1")
    best = model.k_best(X[:1], 2)[0][1][0]
    titles = tab.locator("svg[data-picture='labelling 2'] title").all_text_contents()
    assert titles == [f"node {t}: {label}" for t, label in enumerate(best)]
    tab.click(".rank >> nth=1")
    assert tab.locator("svg[data-picture='predicted']").count() == 1


def test_the_list_of_nodes_is_filtered(shown, graphs):
    model, X, y, html = graphs
    found = model.predict(X)
    i = next(k for k in range(len(y)) if y[k] != list(found[k]))
    wrong = [t for t, (a, b) in enumerate(zip(y[i], found[i], strict=True)) if a != b]
    tab = shown(html)
    tab.click("#tab-examples")
    tab.click("#filter-wrong")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(f".detail h2:has-text('Example {i + 1}')")
    tab.select_option("#node-filter", "wrong")
    shown_names = tab.locator(".noderow .word").all_inner_texts()
    assert shown_names == [f"node {t}" for t in wrong]
    tab.select_option("#node-filter", "unsure")
    own = [float(row[list("abc").index(label)]) for row, label in zip(
        model.predict_marginals([X[i]])[0], found[i], strict=True)]  # fmt: skip
    names = tab.locator(".noderow .word").all_inner_texts()
    assert names == [f"node {t}" for t in np.argsort(own, kind="stable")]


def test_types_of_nodes(shown):
    model, (X, y) = makers.typed_model(), makers.texts(8)
    tab = shown(page(model, X, y))
    open_first(tab)
    n = len(y[0]["word"])
    for t, kind, labels in ((0, "word", ["N", "V"]), (n, "text", ["art", "law", "sport"])):
        tab.click(f"#node-{t}")
        until(tab, f"document.querySelector('#node h3').textContent.endsWith(', {kind}')")
        options = tab.locator("#this-label option").all_inner_texts()
        assert options == [f"{kind}: {label}" for label in labels]
        place = (kind, 0)
        tab.select_option("#this-label", label=options[0])
        tab.select_option("#that-label", label=options[1])
        expected = explain(model, X[0], place, label=labels[0], rival=labels[1], odds="conditional")
        check_sum(tab, expected)
    tab.click("#tab-transitions")
    weights = tab.eval_on_selector_all(
        "[data-table='word-text'] td.weight", "cells => cells.map(c => Number(c.dataset.weight))"
    )
    np.testing.assert_allclose(
        np.reshape(weights, (2, 3)), model.template_weights("word-text")["intercept"], atol=1e-8
    )


def test_cliques_of_three(shown):
    model = makers.template_model()
    tab = shown(page(model, makers.SENTENCES, makers.TAGS), width=390, scheme="dark")
    tab.click("#tab-examples")
    tab.fill("#filter-contains", "the cat")
    assert total(tab) == 1
    open_first(tab)
    tab.click("#node-1")
    until(tab, "document.querySelector('.quoted').textContent === 'cat'")
    tab.select_option("#this-label", label="N")
    tab.select_option("#that-label", label="V")
    expected = explain(model, makers.SENTENCES[0], 1, label="N", rival="V", odds="conditional")
    bars = check_sum(tab, expected)
    assert "with the = D, sleeps = V" in [name for name, _, _ in bars]
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_positions_are_kept(shown):
    model, (X, y) = makers.graph_model(), makers.rings(2, size=5)
    places = np.array([[0, 0], [10, 0], [20, 0], [20, 10], [0, 10]])
    tab = shown(page(model, X, y, positions=[places, places * 7.0]))
    for number in (1, 2):
        open_first(tab, number)
        circles = tab.locator("svg[data-picture='true'] .under")
        both = [circles.nth(t) for t in range(len(places))]
        found = np.array([[float(c.get_attribute(k)) for k in ("cx", "cy")] for c in both])
        found -= found[0]
        np.testing.assert_allclose(found / found[2, 0], places / 20.0, atol=1e-6)


def test_large_data_have_few_elements(shown):
    X, y = makers.table(n=6000, seed=3)
    tab = shown(page(makers.classifier(), X, y))
    tab.click("#tab-examples")
    assert total(tab) == 6000
    assert tab.locator(".row").count() < 60
    tab.focus(".list")
    tab.keyboard.press("End")
    tab.wait_for_selector(".detail h2:has-text('Example 6,000')")
    assert tab.locator(".row").count() < 60


def test_a_large_graph_is_a_list(shown):
    rng = np.random.default_rng(0)
    n = 3000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    y = ["ab"[(k // 50) % 2] for k in range(n)]
    x = (np.array([[own == "a"] for own in y]) + rng.normal(size=(n, 1)), edges)
    html = page(GraphCRF(l2=1.0).fit([x], [y]), [x], [y])
    tab = shown(html)
    open_first(tab)
    assert tab.locator(".graphs").count() == 0
    assert "too large to draw" in tab.inner_text(".detail")
    assert tab.locator(".noderow").count() < 60
    tab.focus(".nodes .list")
    tab.keyboard.press("End")
    until(tab, "document.querySelector('.quoted').textContent === 'node 2999'")
    tab.wait_for_selector("[data-neighbour='2998']")


def test_an_empty_graph_and_labels_that_are_not_known(shown):
    x = (np.ones((2, 1)), np.array([(0, 1)]))
    empty = (np.zeros((0, 1)), np.zeros((0, 2), dtype=np.int64))
    model = GraphCRF().fit([x, x], [["a", "b"], ["b", "a"]])
    tab = shown(page(model, [x, empty, x], [["a", "b"], [], ["a", None]]))
    open_first(tab)
    tab.keyboard.press("j")
    tab.wait_for_selector(".detail .nothing:has-text('This example is empty')")
    tab.keyboard.press("j")
    tab.wait_for_selector(".detail h2:has-text('Example 3')")
    titles = tab.locator("svg[data-picture='true'] title").all_text_contents()
    assert titles == ["node 0: a", "node 1: not known"]
    tab = shown(page(model, [x]))  # without labels
    open_first(tab)
    assert tab.locator("svg[data-picture='true']").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_hostile_names_are_text(shown, width, scheme):
    edges = [(k, k + 1) for k in range(4)]
    X, y = [([[f"w={own}"] for own in HOSTILE], np.array(edges))], [HOSTILE]
    model = GraphCRF(l2=0.1).fit(X, y)
    pages = [page(model, X, y, tokens=[HOSTILE], title=HOSTILE[0])]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        np.eye(5), columns=[own.encode("utf-8", "replace").decode() for own in HOSTILE]
    )
    classifier = CRFClassifier().fit(frame, np.array(HOSTILE, dtype=object))
    pages.append(page(classifier, frame, HOSTILE, tokens=HOSTILE))
    for html in pages:
        tab = shown(html, width=width, scheme=scheme)
        open_first(tab)
        text = tab.inner_text(".detail")
        assert HOSTILE[0] in text
        for name in ("transitions", "features", "overview"):
            tab.click(f"#tab-{name}")
        assert tab.locator("main script, main b b, main img").count() == 0
        assert tab.evaluate("document.documentElement.scrollWidth") == width
    tab = shown(pages[0])
    open_first(tab)
    assert tab.locator(".noderow .word").all_inner_texts() == [SEEN.get(o, o) for o in HOSTILE]


def test_21_labels_have_different_colours_in_pictures(shown):
    labels = [f"label {k:02}" for k in range(21)]
    x = (np.eye(21), np.stack([np.arange(20), np.arange(1, 21)], axis=1))
    html = page(GraphCRF(l2=0.1).fit([x], [labels]), [x], [labels])
    colours = "nodes => nodes.map(n => getComputedStyle(n).{})"
    tab = shown(html)
    open_first(tab)
    swatches = tab.eval_on_selector_all(".labels .swatch", colours.format("backgroundColor"))
    assert len(swatches) == len(set(swatches)) == 21
    nodes = tab.eval_on_selector_all(
        "svg[data-picture='true'] .node circle:last-of-type", colours.format("fill")
    )
    assert set(nodes) == set(swatches)
    grid = np.eye(21)[np.arange(42) % 21].reshape(6, 7, 21)
    y = np.array(labels)[np.arange(42) % 21].reshape(6, 7)
    model = GridCRF(l2=0.1, inference="mean_field", max_iter=5, objective="pseudo_likelihood")
    tab = shown(page(model.fit([grid], [y]), [grid], [y]))
    open_first(tab)
    drawn = tab.evaluate(
        "(() => { const c = document.querySelector('[data-picture=true] canvas'); const d = "
        "c.getContext('2d').getImageData(0, 0, 7, 6).data; return Array.from({length: 21}, "
        "(_, k) => `rgb(${d[4 * k]}, ${d[4 * k + 1]}, ${d[4 * k + 2]})`); })()"
    )
    assert len(set(drawn)) == 21
