"""Text that would like to be more than text."""

import pytest

from chordal import ChainCRF
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
