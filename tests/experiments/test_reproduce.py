"""Reports of experiments: verdicts, the page, the file of results; every experiment, quickly."""

import json
import os
import re
from html.parser import HTMLParser
from importlib.util import find_spec

import numpy as np
import pytest

from chordal.cli import main
from chordal.experiments import EXPERIMENTS, Experiment, Outcome, Row, Setup, Table, reproduce


class Small(Experiment):
    title, about, data, split, model, source = "Small", "A <test>.", "none", "none", "none", "none"

    def run(self, setup):
        from chordal.plots import subplots

        setup.say("drawing")
        outcome = Outcome(rows=[Row("share", 0.5, 0.4), Row("error", 2.0, 1.0, lower=True)])
        outcome.tables.append(Table("More", ["a", "b"], [["x & y", np.float64(1.5)]]))
        outcome.notes.append("a note")
        figure, ax = subplots()
        ax.plot([0, 1])
        outcome.draw("A line", "It rises.", figure)
        return outcome


class Missing(Small):
    def run(self, setup):
        raise FileNotFoundError("put numbers.npz into a folder")


class Page(HTMLParser):
    """Which tags are opened and closed, and what is linked."""

    VOID = frozenset({"meta", "link", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.images, self.links, self.ids = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            assert attributes["alt"]
            self.images.append(attributes["src"])
        if tag == "a":
            self.links.append(attributes["href"])
        if "id" in attributes:
            self.ids.append(attributes["id"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("", 0.9, 0.8), "beaten"),
        (Row("", 0.8004, 0.8), "met"),
        (Row("", 0.79, 0.8), "not met"),
        (Row("", 0.79, 0.8, must=0.75), "met"),
        (Row("", 0.79, must=0.75), "met"),
        (Row("", 0.1, 0.2, lower=True), "beaten"),
        (Row("", 0.3, 0.2, lower=True), "not met"),
        (Row("", 0.3), ""),
        (Row("", 0.9, 0.8, judged=False), ""),
        (Row("", float("nan"), 0.8), "not met"),
        (Row("", float("inf"), 0.8, lower=True), "not met"),
    ],
)
def test_verdicts(row, verdict):
    assert row.verdict == verdict


def test_a_report(tmp_path):
    seen = []
    done = reproduce(
        [("small", Small()), ("missing", Missing())],
        tmp_path / "deep" / "report",
        Setup(say=seen.append),
    )
    assert seen == ["drawing"]
    assert [finished.problem for finished in done] == ["", "put numbers.npz into a folder"]
    text = (tmp_path / "deep" / "report" / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.images) == 1
    assert page.images[0].startswith("data:image/png;base64,")
    assert {link.removeprefix("#") for link in page.links} == set(page.ids) == {"small", "missing"}
    assert "A &lt;test&gt;." in text
    assert "x &amp; y" in text
    assert not re.search(r"(src|href)=\"?http", text)  # it needs no network
    results = json.loads((tmp_path / "deep" / "report" / "results.json").read_text())
    rows = results["experiments"]["small"]["rows"]
    assert [row["verdict"] for row in rows] == ["beaten", "not met"]
    assert results["experiments"]["missing"]["problem"]


def test_a_quick_run_gives_no_verdict(tmp_path):
    (finished,) = reproduce([("small", Small())], tmp_path, Setup(quick=True))
    assert {row.verdict for row in finished.outcome.rows} == {""}
    assert "quick run" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_the_command_lists_and_refuses(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce"])
    assert stopped.value.code == 0
    listed = capsys.readouterr().out
    for name in EXPERIMENTS:
        assert name.replace("_", "-") in listed
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "nothing"])
    assert stopped.value.code == 2
    assert "must be all, " in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_runs(name, tmp_path, capsys):
    """From the command, in a quick form; data that are missing are named."""
    if not os.environ.get("CHORDAL_DATA"):
        pytest.skip("needs the data sets; set CHORDAL_DATA")
    arguments = ["reproduce", name.replace("_", "-"), "--quick", "--json", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    out = capsys.readouterr().out
    (result,) = json.loads(out)["experiments"].values()
    if "chordal[torch]" in result["problem"] and not find_spec("torch"):
        pytest.skip(result["problem"])
    assert stopped.value.code == 0, out
    assert result["problem"] == ""
    figures = [row["ours"] for row in result["rows"] if row["ours"] is not None]  # None: never
    assert figures
    assert not np.isnan(figures).any()
    assert Page((tmp_path / "index.html").read_text(encoding="utf-8")).images
