"""The documents' examples run, each document's in order as one program, and their links lead on."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/features.md",
    "docs/install.md",
    "docs/learning.md",
    "docs/graphs.md",
    "docs/large_data.md",
    "docs/cluster.md",
    "docs/moving.md",
    "docs/torch.md",
    "docs/serving.md",
    "docs/explore.md",
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


def test_the_examples_of_features_run():
    names = run("docs/features.md")
    assert names["frame"]["predicted"].tolist() == ["O", "LOC", "PER"]
    assert names["model"].predict([["via", "New", "York"]]) == [["O", "LOC", "LOC"]]


def test_the_examples_of_large_data_run(capsys):
    pytest.importorskip("pyarrow")
    names = run("docs/large_data.md")
    assert names["data"].n_examples == 3
    assert "1.0 ['D', 'N', 'V']" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")  # of Dask
def test_the_examples_of_clusters_run(capsys):
    pytest.importorskip("distributed", reason='needs "chordal[dask]"')
    names = run("docs/cluster.md")
    assert names["search"].best_params_["l2"] in (0.1, 1.0)
    assert "['D', 'N']\n1.0" in capsys.readouterr().out


def test_the_examples_of_graphs_run():
    assert run("docs/graphs.md")["skip"].inference_.name == "junction_tree"


def test_the_examples_of_torch_run():
    pytest.importorskip("torch")
    names = run("docs/torch.md")
    assert names["again"].predict([["the", "dog", "sleeps"]]) == [["D", "N", "V"]]


def test_the_examples_of_serving_run():
    pytest.importorskip("starlette")
    pytest.importorskip("httpx")
    assert run("docs/serving.md")["spans"] == [("PER", "Ana"), ("LOC", "New York")]


def test_the_examples_of_explore_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("docs/explore.md")
    assert "<title>Cats and dogs</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_examples_of_moving_run():
    """In a process of their own: here the real packages may be imported."""
    text = (ROOT / "docs/moving.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    program += "\nassert labelled == 'the\\tD\\ncat\\tN\\n\\n', labelled"
    program += (
        "\nassert crf.predict_single([{'word': 'cat'}]) == ['N'] and b'chordal' not in content"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
