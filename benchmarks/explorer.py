"""`chordal explore`: how long a page of many sentences takes to appear in headless Chromium."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import conll2000
from benchmarks._run import Part, Row, Run, megabytes, seconds

ROUNDS = 5
LIMITS = {2_000: 1.0, 20_000: 3.0}  # sentences, seconds
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
MARKS = "performance.getEntriesByType('mark').map(mark => [mark.name, mark.startTime])"


def _pages(run: Run) -> Iterator[tuple[int, Path, float]]:
    """Pages of CoNLL-2000, whose sentences are taken again where there are too few."""
    from chordal import ChainCRF, FeatureTemplate
    from chordal.explore import page
    from chordal.formats.conll import CoNLL
    from chordal.preprocessing import default_template
    from chordal.text import Columns

    parts = [CoNLL().load(str(conll2000.path(part))) for part in ("train", "test")]
    rows = [rows for part in parts for rows in part.drop(-1).rows()]
    labels = [own for part in parts for own in part.column(-1)]
    template = FeatureTemplate(default_template("chunking", 2))
    run.say("training a model")
    model = ChainCRF(feature_template=template, max_iter=10 if run.quick else 50, tol=1e-3)
    model.fit(parts[1].drop(-1), parts[1].column(-1))
    for n in [500] if run.quick else LIMITS:
        run.say(f"writing a page of {n:,} sentences")
        X = Columns.from_sequences([rows[i % len(rows)] for i in range(n)])
        start = time.perf_counter()
        html = page(model, X, [labels[i % len(rows)] for i in range(n)])
        path = run.folder / f"explore-{n}.html"
        path.write_text(html, encoding="utf-8")
        yield n, path, time.perf_counter() - start


def _opened(browser: Any, path: Path) -> dict[str, float]:
    """Seconds until the overview was painted, and until the list was ready."""
    tab = browser.new_page()
    try:
        tab.goto(path.as_uri())
        while (
            len(found := tab.evaluate(MARKS)) < 2
        ):  # the page's policy forbids what waits inside it
            time.sleep(0.05)
        return {name: when / 1e3 for name, when in found}
    finally:
        tab.close()


def _first_paint(run: Run) -> Iterator[Row]:
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        yield Row("explore, first paint", problem="no Playwright or no Chromium: make browser")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for n, path, written in _pages(run):
            run.say(f"opening a page of {n:,} sentences")
            times = [_opened(browser, path) for _ in range(ROUNDS)]
            painted = sorted(own["chordal-painted"] for own in times)
            listed = sorted(own["chordal-list"] for own in times)
            limit = LIMITS.get(n)
            what = f"explore, {n:,} sentences ({megabytes(path.stat().st_size)}), "
            for name, values in (("overview painted", painted), ("list ready", listed)):
                yield Row(
                    f"{what}{name}, median (worst) of {ROUNDS}",
                    ours=f"{seconds(values[ROUNDS // 2])} ({seconds(values[-1])})",
                    requirement="" if limit is None else f"< {limit:g} s",
                    met=None if limit is None else run.judged(values[-1] < limit),
                )
            yield Row(f"explore, {n:,} sentences, page written", ours=seconds(written))
        browser.close()


ORDER = 70
PARTS: dict[str, Part] = {"first_paint": _first_paint}
