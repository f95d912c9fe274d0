"""Text that would like to be more than text."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from chordal import ChainCRF, CRFClassifier, MultiLabelCRF, UnsupportedError
from chordal.explore import page

TOKENS = [
    "<script>document.title='owned'</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg/onload=alert(1)>",
    "<!--",
    "'\"`",
    "&lt;b&gt;&amp;",
    "{{script}}",
    "${7*7}",
    "__proto__",
    "constructor",
    "\x00\x07\x1b[31m",
    "a\nb\tc",
    "\u202edesrever\u202c",
    "שלום",
    "مرحبا",
    "\ud800",
    "\udc00x",
    "\u200b",
    "",
    "javascript:alert(1)",
    "http://example.com/x.png",
    "x" * 5000,
    "🙂",
]
SEEN = {
    "\x00\x07\x1b[31m": "␀␇␛[31m",
    "a\nb\tc": "a␊b␉c",
    "\u202edesrever\u202c": "⟨U+202E⟩desrever⟨U+202C⟩",
    "\ud800": "⟨U+D800⟩",
    "\udc00x": "⟨U+DC00⟩x",
    "\u200b": "⟨U+200B⟩",
    "": "␣",
}


@pytest.fixture(scope="module")
def hostile():
    """Tokens, attributes and labels are all of this kind."""
    X = [[[f"w={token}"] for token in TOKENS], [[f"w={token}"] for token in reversed(TOKENS)]]
    labels = ["<b>LOC</b>", "__proto__", '" onload="alert(1)', "\u202etluser", "\ud801", "O"]
    y = [[labels[k % len(labels)] for k in range(len(TOKENS))]]
    y.append(y[0][::-1])
    model = ChainCRF(l2=0.1).fit(X, y)
    y[1] = ["<i>unknown</i>", *y[1][1:]]
    title = "</title><script>alert(1)</script>\ud800"
    return page(model, X, y, tokens=[TOKENS, TOKENS[::-1]], title=title)


def test_it_is_text(shown, hostile):
    tab = shown(hostile)
    assert "<script>alert(1)</script>" in tab.inner_text("#title")
    assert tab.title() == "</title><script>alert(1)</script>?"
    scripts = tab.locator("script:not([type='application/octet-stream'])").count()
    assert scripts == 1
    tab.click("#tab-examples")
    tab.click(".row >> nth=0")
    tab.wait_for_selector(".token")
    words = tab.eval_on_selector_all(".token .word", "nodes => nodes.map(n => n.textContent)")
    assert words == [SEEN.get(token, token) for token in TOKENS]
    for t in range(len(TOKENS)):
        tab.click(f".token[data-position='{t}']")
        tab.wait_for_selector(".odds")
    chips = tab.eval_on_selector_all(".chip.found", "nodes => nodes.map(n => n.textContent)")
    assert chips[:5] == [
        "<b>LOC</b>",
        "__proto__",
        '" onload="alert(1)',
        "⟨U+202E⟩tluser",
        "⟨U+D801⟩",
    ]
    for name in ("transitions", "features", "overview"):
        tab.click(f"#tab-{name}")
    assert tab.locator("main img, main script, main b b, main i").count() == 0
    assert tab.locator("script:not([type='application/octet-stream'])").count() == scripts


def test_filters_find_it(shown, hostile):
    tab = shown(hostile, width=390)
    tab.click("#tab-examples")
    for query in ("<script>document", "__proto__", "שלום", "'\"`"):
        tab.fill("#filter-contains", query)
        assert tab.inner_text("#examples .total b") == "2"
    tab.fill("#filter-contains", "")
    tab.click("#tab-features")
    tab.fill("#feature-search", "w=__proto__")
    assert tab.inner_text("#features .total b") == "1"
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"title": 3}, "title must be a str"),
        ({"tokens": 5}, "tokens must be a list with one entry per example, got 5"),
        ({"tokens": "ab"}, "tokens must be a list"),
        ({"image_shape": 3}, "image_shape must be .height, width., got 3"),
        ({"image_shape": (2,)}, "image_shape must be"),
        ({"image_shape": (0, 2)}, "height of image_shape must be"),
        ({"image_shape": ("a", 2)}, "height of image_shape must be"),
    ],
)
def test_options_of_wrong_types(options, message):
    X, y = [[["a"], ["b"]]], [["x", "y"]]
    with pytest.raises((TypeError, ValueError), match=message):
        page(ChainCRF(max_iter=1).fit(X, y), X, y, **options)


@pytest.mark.parametrize("X", [5, None, "ab"])
def test_examples_of_wrong_types(X):
    model = ChainCRF(max_iter=1).fit([[["a"], ["b"]]], [["x", "y"]])
    with pytest.raises((TypeError, UnsupportedError), match=r"X must be a list|in memory"):
        page(model, X)


@pytest.mark.parametrize("odd", [5, -1, np.nan, 0.5])
def test_presence_of_labels_is_zero_or_one(odd):
    """Other numbers became labels of the page."""
    rows = np.eye(3)
    model = MultiLabelCRF(max_iter=2).fit(rows, np.eye(3, dtype=int)[:, :2])
    y = np.zeros((3, 2))
    y[1, 0] = odd
    with pytest.raises(ValueError, match=r"y must hold 0 and 1, or None, got .* in row 1"):
        page(model, rows, y)


def test_sparse_rows_with_few_zeros():
    """As of documents: rows that the list shows by their first columns."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    model = CRFClassifier(max_iter=3).fit(X, list("abcabc"))
    assert page(model, csr_matrix(X), list("abcabc")) == page(model, X, list("abcabc"))
    with pytest.raises(ValueError, match="verbose must be an integer"):
        page(model, X, verbose=None)
