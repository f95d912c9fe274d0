"""Pages, what is inside them, and a browser that notes errors and requests."""

import base64
import gzip
import json
import re
import shutil
import time

import numpy as np
import pytest

from chordal import ChainCRF
from chordal.explore import page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
TYPES = {
    "Uint8Array": "<u1", "Uint16Array": "<u2", "Uint32Array": "<u4",
    "Float32Array": "<f4", "Float64Array": "<f8",
}  # fmt: skip


def unpacked(html):
    """Facts and columns of every block of a page, by name."""
    found = re.findall(r'<script type="application/octet-stream" id="block-([\w-]+)">(.*?)<', html)
    out = {}
    for name, text in found:
        raw = gzip.decompress(base64.b64decode(text))
        length = int.from_bytes(raw[:4], "little")
        facts = json.loads(raw[4 : 4 + length])
        columns = {
            key: np.frombuffer(raw, TYPES[kind], n, 4 + length + start)
            for key, (kind, start, n) in facts.pop("columns").items()
        }
        out[name] = facts, columns
    return out


WORDS = ["the", "a", "cat", "dog", "sleeps", "sees", "run", "Rome", "old", "quickly"]
TAGS = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sleeps": "V", "sees": "V", "run": "V"}
TAGS |= {"Rome": "N", "old": "A", "quickly": "R"}


def sentences(n, seed=0):
    """Random sentences with tags, of which some are wrong: a model does not learn them all."""
    rng = np.random.default_rng(seed)
    X, y, tokens = [], [], []
    for _ in range(n):
        words = [str(word) for word in rng.choice(WORDS, size=int(rng.integers(2, 9)))]
        tags = [TAGS[word] for word in words]
        flip = rng.random(len(words)) < 0.08
        y.append(
            [str(rng.choice(list("DNVAR"))) if f else t for t, f in zip(tags, flip, strict=True)]
        )
        X.append([{f"w={w}": 1.0, f"end={w[-1]}": 0.5, "length": len(w) / 4} for w in words])
        tokens.append(words)
    return X, y, tokens


@pytest.fixture(scope="session")
def tagged():
    """A model, data and the page of both."""
    X, y, tokens = sentences(400)
    model = ChainCRF(l2=0.5, max_iter=30, tol=1e-2, ends=True, fit_intercept=True).fit(X, y)
    X, y, tokens = sentences(300, seed=1)
    return model, X, y, tokens, page(model, X, y, tokens=tokens, title="Tags")


@pytest.fixture(scope="module")  # an event loop runs as long as it is there
def browser():
    """Headless Chromium; skipped without it."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: make browser"
    )
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        pytest.skip("Chromium is not installed: make browser")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


def until(tab, expression):
    """Wait for an expression to be true; the page's policy forbids waiting inside the page."""
    end = time.monotonic() + 10
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.02)


@pytest.fixture
def shown(browser, tmp_path):
    """shown(html, width): a page in the browser, which logs no error and sends no request."""
    problems, contexts = [], []

    def open_page(html, width=1280, height=900, scheme="light", wait="#overview"):
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)

        def route(asked):
            if asked.request.url == path.as_uri():
                asked.continue_()
            else:
                problems.append(f"request: {asked.request.url}")
                asked.abort()

        context.route("**/*", route)
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: problems.append(f"error: {error}"))
        tab.on(
            "dialog",
            lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector(wait)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
