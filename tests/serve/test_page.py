"""The page to try a model, in a browser."""

import shutil
import time

import pytest

import chordal

pytest.importorskip("chordal.serve")

HOSTILE = "B-<b>PER</b>\u202e" + "X" * 80  # markup, a turn of direction, and a long name
FLAGS = ["--no-sandbox", "--disable-gpu"]


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; skipped without it."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: make browser")
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    path = next(filter(None, programs), None)
    if path is None:
        pytest.skip("Chromium is not installed: make browser")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def tab(browser, serve, all_models, tmp_path):
    """The page of a server with three models, on a phone."""
    words = [[["Zap"], ["in"]], [["a"], ["b"]]]
    template = "U0:%x[0,0]\nB\n"
    hostile = chordal.ChainCRF(feature_template=template).fit(words, [[HOSTILE, "O"], ["O", "O"]])
    paths = []
    for name, model in (
        ("words", all_models["words"]),
        ("hostile", hostile),
        ("arrays", all_models["arrays"]),
    ):
        paths.append(tmp_path / f"{name}.model")
        chordal.save(model, paths[-1])
    server, problems = serve(*paths), []
    context = browser.new_context(viewport={"width": 390, "height": 800})
    tab = context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: problems.append("a dialog"))
    tab.goto(server.url)
    until(tab, "document.getElementById('model').options.length == 3")
    yield tab
    context.close()
    assert not problems


def until(tab, expression):
    """Wait for an expression to be true; the page's policy forbids waiting inside the page."""
    end = time.monotonic() + 10
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.02)


def asked(tab, name, text):
    """What the page says to an input of a model: the result, and the line below."""
    tab.select_option("#model", name)
    tab.evaluate("document.getElementById('below').textContent = ''")
    tab.fill("#input", text)
    tab.click("#go")
    until(tab, "document.getElementById('below').textContent != ''")
    return tab.inner_text("#result"), tab.inner_text("#below")


def test_spans_and_errors(tab):
    result, below = asked(tab, "words", "Ana Bell sees New York")
    assert "Ana BellPER" in result.replace("\n", "")
    assert below.startswith("version ")
    assert tab.locator("mark").count() == 2
    tab.select_option("#shade", "B-LOC")
    assert tab.locator("mark").count() == 0
    assert asked(tab, "arrays", "1 2 x") == ("", "rows[0][2] must be a number, got a string")
    assert asked(tab, "arrays", "1 2") == ("", "rows[0] must have 3 numbers, got 2")


def test_hostile_names_stay_text_and_fit_a_phone(tab):
    result, _ = asked(tab, "hostile", "Zap in")
    assert HOSTILE[2:] in result
    assert tab.locator("mark small bdi").inner_text() == HOSTILE[2:]  # its direction ends with it
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_an_answer_that_comes_late_is_not_shown(tab):
    held = []
    tab.route("**/models/words/tag", lambda route: held.append(route))
    tab.fill("#input", "Ana lives in Rome .")
    tab.click("#go")
    result, below = asked(tab, "hostile", "a b")
    for _ in range(200):
        if held:
            break
        tab.wait_for_timeout(20)
    held[0].continue_()
    tab.wait_for_timeout(300)
    assert (tab.inner_text("#result"), tab.inner_text("#below")) == (result, below)
