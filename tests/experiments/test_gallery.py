"""Pages of the gallery: made from a report, complete, and their links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

from chordal.experiments import (
    EXPERIMENTS,
    Experiment,
    Outcome,
    Row,
    Samples,
    Table,
    Token,
    reproduce,
)
from chordal.experiments._pictures import curves

DOCS = Path(__file__).parents[2] / "docs"


class Small(Experiment):
    title, about, data, split, model, source = "Small", "About.", "few", "none", "none", "a book"

    def run(self, setup):
        outcome = Outcome(
            [
                Row("share | of", 0.5, 0.4, must=0.3, why="other data"),
                Row("passes", float("inf"), 3.0, lower=True),
            ]
        )
        outcome.tables.append(Table("More", ["a", "b"], [["x_y", 1.5]]))
        wrong = Token("cat", "NOUN", {"HMM": "VERB"})
        outcome.samples.append(Samples("Words", "", [[Token("the", "DET", {}), wrong]]))
        outcome.pictures.append(
            curves("Curve", "It rises.", {"a": [1, 2], "b": [0, 1]}, xlabel="x", ylabel="y")
        )
        return outcome


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    # The name of a real experiment, whose code is quoted.
    reproduce([("hmm-crf", Small())], folder / "report")
    main = runpy.run_path(str(DOCS / "make_gallery.py"))["main"]
    (folder / "pages").mkdir()
    (folder / "pages" / "old.md").write_text("from an earlier run")
    main(folder / "report", folder / "pages")
    return folder / "pages"


def test_a_page(gallery):
    text = (gallery / "hmm-crf.md").read_text(encoding="utf-8")
    assert text.startswith("# Small\n")
    assert "- **Published in**: a book" in text
    row = (
        "| share \\| of<br><sub>asked: at least 0.300; other data</sub> | 0.400 | 0.500 | beaten |"
    )
    assert row in text
    assert "| passes | 3.000 | never | **not met** |" in text
    assert "![y by x: a from 1 to 2; b from 0 to 1.](images/hmm-crf-1.png)" in text
    assert "- the **cat** (NOUN; HMM: VERB)" in text
    assert "| x\\_y | 1.500 |" in text
    assert "def run(self, setup: Setup) -> Outcome:" in text


def test_the_index(gallery):
    assert sorted(p.name for p in gallery.iterdir()) == ["README.md", "hmm-crf.md", "images"]
    text = (gallery / "README.md").read_text(encoding="utf-8")
    assert "1 beaten, 1 not met" in text
    assert '<img src="images/hmm-crf-1.png" width="240"' in text


def links(folder):
    for page in folder.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r'\]\(([^)#]+)\)|src="([^"]+)"', text):
            yield page, "".join(target)


def test_links_lead_somewhere(gallery):
    found = {target for _, target in links(gallery)}
    assert found == {
        "hmm-crf.md",
        "images/hmm-crf-1.png",
        "../../src/chordal/experiments/hmm_crf.py",
    }
    missing = [(p.name, t) for p, t in links(DOCS / "gallery") if not (p.parent / t).exists()]
    assert missing == []


def test_pages_are_of_experiments():
    names = {page.stem for page in (DOCS / "gallery").glob("*.md")} - {"README"}
    assert names
    assert names <= {name.replace("_", "-") for name in EXPERIMENTS}


def test_pictures_are_small_and_all_are_shown():
    pictures = set((DOCS / "gallery" / "images").iterdir())
    assert pictures == {p.parent / t for p, t in links(DOCS / "gallery") if t.startswith("images/")}
    assert sum(p.stat().st_size for p in pictures) < 1_500_000


def test_pages_quote_the_code_as_it_is():
    tool = runpy.run_path(str(DOCS / "make_gallery.py"))
    pages = [path for path in (DOCS / "gallery").glob("*.md") if path.stem != "README"]
    assert len(pages) == len(EXPERIMENTS.names())
    for path in pages:
        code = tool["code"](path.stem).rstrip() + "\n"
        assert path.read_text(encoding="utf-8").endswith(code), (
            f"{path.name}: run docs/make_gallery.py --code"
        )
