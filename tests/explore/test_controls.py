"""Every control by real clicks and keys; what must come out is computed in Python."""

from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF, GridCRF
from chordal.explore import page

from .conftest import unpacked, until


@pytest.fixture
def facts(tagged):
    """What the filters have to find: columns of the list, and sentences with gold and predicted."""
    model, X, y, tokens, html = tagged
    columns = unpacked(html)["list"][1]
    return columns, tokens, y, [list(own) for own in model.predict(X)]


def total(tab):
    return int(tab.inner_text("#examples .total b").replace(",", ""))


def numbers(tab):
    """The examples in sight, from the top, counted from 0."""
    rows = tab.eval_on_selector_all(
        ".row",
        "rows => rows.map(r => [parseFloat(r.style.top), r.querySelector('.meta').textContent])",
    )
    return [
        int(text.split("#")[1].split("✓")[0].split("✗")[0].replace(",", "")) - 1
        for _, text in sorted(rows)
    ]


def opened(tab):
    return int(tab.inner_text(".detail h2").split()[1].replace(",", "")) - 1


def wrong(y, found):
    return {i for i, (a, b) in enumerate(zip(y, found, strict=True)) if a != b}


def test_views_by_clicks_and_keys(shown, tagged):
    tab = shown(tagged[-1])
    assert tab.title() == "Tags"
    assert tab.inner_text("#title") == "Tags"
    for key, name in enumerate(("overview", "examples", "transitions", "features"), start=1):
        tab.click(f"#tab-{name}")
        tab.wait_for_selector(f"#{name}")
        assert tab.get_attribute(f"#tab-{name}", "aria-selected") == "true"
        tab.keyboard.press("1" if key != 1 else "2")
        tab.wait_for_selector(f"#{name}", state="detached")
        tab.keyboard.press(str(key))
        tab.wait_for_selector(f"#{name}")


def test_wrong_only(shown, tagged, facts):
    _, _, y, found = facts
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    assert total(tab) == len(y)
    tab.click("#filter-wrong")
    assert total(tab) == len(wrong(y, found))
    assert set(numbers(tab)) <= wrong(y, found)
    tab.keyboard.press("Escape")
    tab.keyboard.press("w")
    assert total(tab) == len(y)
    tab.keyboard.press("w")
    assert total(tab) == len(wrong(y, found))
    tab.click("#clear")
    assert total(tab) == len(y)


def test_contains_word(shown, tagged, facts):
    _, tokens, _, _ = facts
    tab = shown(tagged[-1])
    tab.keyboard.press("/")
    until(tab, "document.activeElement.id === 'filter-contains'")
    tab.keyboard.type("ROM")
    assert total(tab) == sum("Rome" in own for own in tokens)
    tab.fill("#filter-contains", "the cat")
    pairs = [("the", "cat") in pairwise(own) for own in tokens]
    assert total(tab) == sum(pairs)
    tab.click(".row >> nth=0")
    i = opened(tab)
    place = int(tab.get_attribute(".token[aria-pressed='true']", "data-position"))
    assert tokens[i][place : place + 2] == ["the", "cat"]
    tab.fill("#filter-contains", "no such word")
    assert total(tab) == 0
    tab.keyboard.press("Escape")
    tab.keyboard.press("c")
    assert total(tab) == len(tokens)
    assert tab.input_value("#filter-contains") == ""


def test_low_confidence(shown, tagged, facts):
    columns, *_ = facts
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    tab.focus("#filter-confidence")
    tab.keyboard.press("Home")
    assert total(tab) == 0
    for _ in range(70):
        tab.keyboard.press("ArrowRight")
    assert tab.inner_text("output") == "0.70"
    assert total(tab) == int((columns["confidence"] <= np.float32(0.7)).sum())


def test_label_pair(shown, tagged, facts):
    _, _, y, found = facts
    classes = tagged[0].classes_.tolist()
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    tab.select_option("#filter-gold", label="N")
    assert total(tab) == sum("N" in own for own in y)
    tab.select_option("#filter-predicted", label="V")
    both = [("N", "V") in zip(a, b, strict=True) for a, b in zip(y, found, strict=True)]
    assert total(tab) == sum(both)
    tab.select_option("#filter-gold", label="any")
    assert total(tab) == sum("V" in own for own in found)
    assert tab.input_value("#filter-predicted") == str(classes.index("V"))


def test_orders(shown, tagged, facts):
    columns, tokens, y, found = facts
    errors = np.array(
        [sum(p != q for p, q in zip(a, b, strict=True)) for a, b in zip(y, found, strict=True)]
    )
    keys = {
        "order": np.arange(len(y)),
        "loss": -columns["loss"],
        "confidence": columns["confidence"],
        "margin": columns["margin"],
        "errors": -errors,
        "length": -np.array([len(own) for own in tokens]),
    }
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    for name, key in keys.items():
        tab.select_option("#filter-sort", name)
        expected = np.argsort(key, kind="stable")
        seen = numbers(tab)
        assert seen == expected[: len(seen)].tolist(), name
        tab.click("#filter-reversed")
        assert tab.get_attribute("#filter-reversed", "aria-pressed") == "true"
        assert numbers(tab) == expected[::-1][: len(seen)].tolist(), name
        tab.click("#filter-reversed")


def test_confusion_leads_to_its_examples(shown, tagged, facts):
    _, _, y, found = facts
    classes = tagged[0].classes_.tolist()
    tab = shown(tagged[-1])
    cells = unpacked(tagged[-1])["summary"][0]["figures"]["confusion"]
    a, b, n = max((cell for cell in cells if cell[0] != cell[1]), key=lambda cell: cell[2])
    text = f"{classes[a]} taken for {classes[b]}: {n}"
    tab.click(f".confusion button[title='{text}']")
    tab.wait_for_selector("#examples")
    both = [
        (classes[a], classes[b]) in zip(*own, strict=True) for own in zip(y, found, strict=True)
    ]
    assert total(tab) == sum(both)
    assert opened(tab) == both.index(True)
    place = int(tab.get_attribute(".token[aria-pressed='true']", "data-position"))
    assert (y[opened(tab)][place], found[opened(tab)][place]) == (classes[a], classes[b])
    tab.keyboard.press("1")
    tab.click(".pair >> nth=0")
    assert total(tab) == sum(both)


def test_the_table_of_labels(shown, tagged, facts):
    _, _, y, found = facts
    tab = shown(tagged[-1])
    cells = "#table-labels tbody td:nth-child({})"
    counts = [int(text.replace(",", "")) for text in tab.locator(cells.format(2)).all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    tab.click("#table-labels th:nth-child(2) button")
    counts = [int(text.replace(",", "")) for text in tab.locator(cells.format(2)).all_inner_texts()]
    assert counts == sorted(counts)
    tab.click("#table-labels th:nth-child(1) button")
    assert tab.locator(cells.format(1)).all_inner_texts() == tagged[0].classes_.tolist()
    tab.click("#table-labels tbody bdi:text-is('N')")
    tab.wait_for_selector("#examples")
    missed = [
        any(p == "N" != q for p, q in zip(a, b, strict=True)) for a, b in zip(y, found, strict=True)
    ]
    assert total(tab) == sum(missed)


@pytest.mark.parametrize(
    ("text", "sort", "reversed_", "only_wrong"),
    [
        ("Worst predictions", "loss", "false", True),
        ("Sure and wrong: check the labels", "confidence", "true", True),
        ("What to label next", "margin", "false", False),
        ("All examples", "order", "false", False),
    ],
)
def test_starters(shown, tagged, facts, text, sort, reversed_, only_wrong):
    _, _, y, found = facts
    tab = shown(tagged[-1])
    tab.click(f".starter:has-text('{text}')")
    tab.wait_for_selector("#examples")
    assert tab.input_value("#filter-sort") == sort
    assert tab.get_attribute("#filter-reversed", "aria-pressed") == reversed_
    assert total(tab) == (len(wrong(y, found)) if only_wrong else len(y))


def test_moving_through_examples_and_positions(shown, tagged):
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    assert opened(tab) == 0
    tab.keyboard.press("j")
    tab.keyboard.press("ArrowDown")
    tab.wait_for_selector(".detail h2:has-text('Example 3')")
    tab.keyboard.press("k")
    tab.wait_for_selector(".detail h2:has-text('Example 2')")
    tab.click(".next")
    tab.wait_for_selector(".detail h2:has-text('Example 3')")
    tab.click(".previous")
    tab.wait_for_selector(".detail h2:has-text('Example 2')")
    tab.focus(".list")
    for key, number in (
        ("End", 300),
        ("PageUp", None),
        ("Home", 1),
        ("ArrowDown", 2),
        ("PageDown", None),
    ):
        tab.keyboard.press(key)
        if number:
            tab.wait_for_selector(f".detail h2:has-text('Example {number}')")
    tab.click(".token >> nth=0")
    for t in (1, 0, 0):
        tab.keyboard.press("ArrowRight" if t else "ArrowLeft")
        assert tab.get_attribute(".token[aria-pressed='true']", "data-position") == str(t)
    tab.click(".lattice .hit:not(.here) >> nth=0")
    assert tab.get_attribute(".token[aria-pressed='true']", "data-position") == "1"


def test_best_labellings_are_drawn(shown, tagged):
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".paths")
    assert tab.locator(".paths li").count() == 3
    assert tab.locator(".lattice .other").count() == 0
    tab.click(".rank >> nth=1")
    assert tab.locator(".lattice .other").count() == 1
    place = tab.locator(".paths li:nth-child(2) .change").first
    token = place.inner_text().split()[0]
    place.click()
    assert tab.inner_text(".token[aria-pressed='true'] .word") == token
    tab.click(".rank >> nth=1")
    assert tab.locator(".lattice .other").count() == 0


def test_transitions(shown, tagged):
    model = tagged[0]
    tab = shown(tagged[-1])
    tab.click("#tab-transitions")
    n = len(model.classes_)
    for name, table in (("transitions", model.transitions_), ("start", model.start_)):
        found = tab.eval_on_selector_all(
            f"[data-table='{name}'] td.weight", "cells => cells.map(c => Number(c.dataset.weight))"
        )
        np.testing.assert_allclose(np.reshape(found, (-1, n)), np.atleast_2d(table), atol=1e-8)


@pytest.mark.parametrize(("labels", "turned"), [(["a", "b"], False), (["noun", "verb"], True)])
def test_long_labels_above_columns_are_turned(shown, labels, turned):
    X = [[["w=a"], ["w=b"]]]
    tab = shown(page(ChainCRF(l2=0.1).fit(X, [labels]), X, [labels]))
    tab.click("#tab-examples")
    assert tab.locator(".total").text_content() == "1 example"
    tab.click("#tab-transitions")
    mode = "e => getComputedStyle(e).writingMode"
    assert (tab.eval_on_selector("thead span", mode) == "vertical-rl") is turned


def test_feature_search(shown, tagged):
    model = tagged[0]
    tab = shown(tagged[-1])
    tab.click("#tab-features")
    every = {name for name, _, _ in model.top_features(10**6)}
    assert tab.inner_text("#features .total b") == str(len(every))
    tab.keyboard.press("/")
    tab.keyboard.type("W=S")
    assert tab.inner_text("#features .total b") == str(
        sum(name.startswith("w=s") for name in every)
    )
    tab.fill("#feature-search", "")
    tab.select_option("#feature-label", label="V")
    best = model.top_features(1, label="V")[0]
    assert tab.inner_text(".attributes li:first-child code bdi") == best[0]
    weight = float(tab.get_attribute(".attributes li:first-child .chip", "data-weight"))
    np.testing.assert_allclose(weight, best[2], rtol=1e-6)


def test_from_an_explanation_to_the_weights(shown, tagged):
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    name = tab.inner_text(".bars .attribute .link >> nth=0")
    tab.click(".bars .attribute .link >> nth=0")
    tab.wait_for_selector("#features")
    assert tab.input_value("#feature-search") == name
    assert tab.inner_text(".attributes li:first-child code bdi") == name


def test_help_and_colours(shown, tagged):
    tab = shown(tagged[-1])
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(paper)
    tab.click("#theme")
    assert tab.evaluate(paper) == light
    tab.keyboard.press("t")
    dark = tab.evaluate(paper)
    assert dark != light
    tab.keyboard.press("t")
    assert tab.evaluate(paper) == light
    tab.keyboard.press("?")
    tab.wait_for_selector("dialog[open]")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("dialog[open]", state="detached")
    tab.click("#help")
    tab.click("dialog button")
    tab.wait_for_selector("dialog[open]", state="detached")
    assert shown(tagged[-1], scheme="dark").evaluate(paper) == dark


def test_a_phone(shown, tagged):
    tab = shown(tagged[-1], width=390, height=844, scheme="dark")
    for name in ("overview", "examples", "transitions", "features"):
        tab.click(f"#tab-{name}")
        tab.wait_for_selector(f"#{name}")
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.click("#tab-examples")
    assert not tab.is_visible(".detail")
    assert not tab.is_visible("#filter-wrong")
    tab.click("summary")
    tab.click("#filter-wrong")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".detail")
    assert not tab.is_visible(".list")
    tab.click(".next")
    tab.click(".back")
    assert tab.is_visible(".list")
    tab.click(".row >> nth=0")
    tab.keyboard.press("Escape")
    assert tab.is_visible(".list")


def test_only_rows_in_sight_are_in_the_page(shown, tagged):
    tab = shown(tagged[-1])
    tab.click("#tab-examples")
    assert tab.locator(".row").count() < 30
    tab.evaluate("document.querySelector('.list').scrollTop = 150 * 62")
    tab.wait_for_selector("#row-150")
    assert tab.locator(".row").count() < 30
    assert tab.locator("#row-0").count() == 0


def test_grids(shown):
    rng = np.random.default_rng(0)
    y = [np.where(np.repeat([[0, 0, 1, 1]], 3, axis=0), "sky", "sea") for _ in range(4)]
    X = [(image == "sky")[..., None] + rng.normal(size=(3, 4, 3)) for image in y]
    model = GridCRF(l2=0.1).fit(X, y)
    tab = shown(page(model, X, y))
    tab.click("#tab-transitions")
    assert tab.locator("[data-table='edges'] td.weight").count() == 4
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".plate")
    pictures = tab.eval_on_selector_all(".plate", "plates => plates.map(p => p.dataset.picture)")
    assert pictures == ["image", "true", "predicted", "errors", "doubt"]
    drawn = tab.eval_on_selector(
        "[data-picture='true'] canvas",
        "c => [...c.getContext('2d').getImageData(0, 0, 4, 1).data].filter((_, k) => k % 4 < 3)",
    )
    assert drawn == [0, 114, 178] * 2 + [230, 159, 0] * 2
    assert tab.locator(".row canvas").count() == 8


def test_without_labels(shown):
    X = [[["w=a"], ["w=b"]], [["w=b"], ["w=c"]]]
    model = ChainCRF(l2=0.1).fit(X, [["A", "B"], ["B", "A"]])
    tab = shown(page(model, X))
    tab.click("#table-labels tbody bdi:text-is('B')")
    tab.wait_for_selector("#examples")
    assert tab.input_value("#filter-predicted") == "1"
    assert (
        tab.locator("#filter-wrong, #filter-gold, #filter-sort option[value='loss']").count() == 0
    )
    tab.keyboard.press("w")
    assert total(tab) == 2
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".odds")


@pytest.mark.parametrize("n_known", [2, 0])
def test_infinite_losses_are_not_hidden_by_the_mean(shown, n_known):
    X = [[["w=a"], ["w=b"]]] * 4
    model = ChainCRF(l2=0.1).fit(X, [["A", "B"]] * 4)
    y = [["A", "B"]] * n_known + [["A", "<b>C</b>"], ["D", "B"], ["A", "D"]]
    tab = shown(page(model, X[:1] * len(y), y))
    tile = tab.inner_text(".tile:has-text('loss')")
    assert tile.startswith("∞\nmean loss" if n_known == 0 else "0.")
    assert ("mean finite loss" in tile) == (n_known > 0)
    assert "∞ for 3 examples" in tile
    assert "The model does not know: <b>C</b>, D" in tab.inner_text("#overview")
