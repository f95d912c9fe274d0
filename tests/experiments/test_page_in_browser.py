"""The page in a real browser: no error, no missing picture, nothing wider than the screen."""

import json
import shutil
import subprocess

import pytest

from chordal.experiments import Experiment, Outcome, Row, Samples, Table, Token, reproduce

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

# The page is drawn in a frame as wide as the screen, and the frame asks it.
ASK = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" src="index.html" style="border:0;width:%(width)dpx;height:900px"></iframe>
<pre id="answer">nothing</pre>
<script>
const frame = document.getElementById("page");
frame.onload = () => {
  const inner = frame.contentWindow, page = frame.contentDocument;
  const images = [...page.images];
  document.getElementById("answer").textContent = JSON.stringify({
    width: inner.innerWidth,
    wide: page.documentElement.scrollWidth,
    images: images.length,
    missing: images.filter(i => !i.complete || !i.naturalWidth).length,
    narrow: images.map(i => i.getBoundingClientRect().width),
    font: Math.min(...[...page.querySelectorAll("p, td, th, dd")].map(
      e => parseFloat(inner.getComputedStyle(e).fontSize))),
    fetched: inner.performance.getEntriesByType("resource").filter(
      e => !e.name.startsWith("data:")).length,
  });
};
</script>"""


class Everything(Experiment):
    """Every kind of content, with long words and wide tables."""

    title, about = (
        "Everything, at a length that does not fit on one line of a telephone",
        "A <page>.",
    )
    data, split, model, source = "none", "none", "x" * 120, "nobody"

    def run(self, setup):
        from chordal.experiments._pictures import confusion
        from chordal.plots import subplots

        row = Row("a figure", 0.5, 0.6, must=0.4, spread=0.1, why="another protocol")
        table = Table("Wide", [f"column {k}" for k in range(20)], [[float(k) for k in range(20)]])
        words = [Token("word" * 5, "TAG", {"a model": "OTHER"}), Token("short", "TAG", {})] * 10
        outcome = Outcome([row], [table], samples=[Samples("Samples", "Of words.", [words])])
        outcome.pictures.append(confusion("Confusion", "Two.", [["a", "b"]], [["a", "a"]]))
        outcome.draw("Wide", "Two panels.", subplots(1, 2, size=(10.0, 3.0))[0], "Two panels.")
        return outcome


def ask(folder, width):
    (folder / "ask.html").write_text(ASK % {"width": width}, encoding="utf-8")
    run = subprocess.run(
        [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={max(width, 500)},1000",
            "--dump-dom",
            (folder / "ask.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in run.stderr, run.stderr
    answer = run.stdout.partition('<pre id="answer">')[2].partition("</pre>")[0]
    return json.loads(answer)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(tmp_path, width):
    reproduce([("everything", Everything())], tmp_path)
    answer = ask(tmp_path, width)
    assert answer["width"] == width
    assert answer["wide"] <= width  # nothing but tables and wide pictures scrolls sideways
    assert answer["images"] == 2
    assert answer["missing"] == 0
    assert answer["narrow"][0] <= width
    assert answer["font"] >= 12.5
    assert answer["fetched"] == 0  # the page holds all it needs
