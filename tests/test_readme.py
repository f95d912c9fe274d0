"""The documents' examples run, each document's in order as one program, and their links lead on."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/install.md",
    "docs/learning.md",
    "docs/graphs.md",
    "docs/experiments.md",
    "docs/design.md",
    "docs/dependencies.md",
]


def run(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile("\n".join(blocks), name, "exec"), names)
    return names


def test_the_readmes_examples_run():
    assert run("README.md")["search"].best_params_["l2"] in (0.1, 1.0, 10.0)


def test_the_examples_of_learning_run():
    assert run("docs/learning.md")["crf"].classes_.tolist() == [0, 1]


def test_the_examples_of_graphs_run():
    assert run("docs/graphs.md")["skip"].inference_.name == "junction_tree"


def test_every_experiment_is_listed():
    from chordal.experiments import EXPERIMENTS

    text = (ROOT / "docs/gallery/README.md").read_text(encoding="utf-8")
    names = [name.replace("_", "-") for name in EXPERIMENTS]
    assert not {name for name in names if f"]({name}.md)" not in text}


def test_tables_and_counts_are_those_of_the_registries():
    script = runpy.run_path(str(ROOT / "docs/make_tables.py"))
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert text == script["remade"](text), f"{name}: run `make tables`"
    marked = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)
    assert set(re.findall(r"<!-- made:(\w+) -->", marked)) == set(script["MADE"])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert ((ROOT / name).parent / target).exists(), target
