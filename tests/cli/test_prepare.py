"""prepare, and training from what it wrote: the model that the files themselves give."""

import json
import os

import numpy as np
import pytest

from chordal import ChainCRF, Dataset, FeatureTemplate, load

from .conftest import SENTENCES, TEMPLATE, as_text


@pytest.fixture
def columns(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    half = len(SENTENCES) // 2
    for path, sentences in zip(paths, (SENTENCES[:half], SENTENCES[half:]), strict=True):
        path.write_text(as_text(sentences))
    whole = tmp_path / "whole.txt"
    whole.write_text(as_text(SENTENCES))
    template = tmp_path / "template"
    template.write_text(TEMPLATE)
    return paths, whole, template


def same(a, b):
    first, second = load(a), load(b)
    np.testing.assert_array_equal(first.weights_, second.weights_)
    assert first.classes_.tolist() == second.classes_.tolist()
    assert first.input_.vocabulary.names() == second.input_.vocabulary.names()


def test_files_of_columns(chordal, columns, tmp_path):
    paths, whole, template = columns
    made = json.loads(chordal("prepare", *paths, "-t", template, "-o", tmp_path / "data", "--json"))
    tokens = sum(map(len, SENTENCES))
    assert (made["sequences"], made["tokens"]) == (len(SENTENCES), tokens)
    chordal("train", tmp_path / "data", tmp_path / "one", "-q", "--max-iter", "20")
    chordal("train", whole, "-t", template, tmp_path / "two", "-q", "--max-iter", "20")
    same(tmp_path / "one", tmp_path / "two")


def test_a_task_and_more_files_later(chordal, columns, tmp_path):
    paths, whole, _ = columns
    chordal("prepare", paths[0], "--task", "ner", "-o", tmp_path / "data")
    chordal("prepare", paths[1], "--task", "ner", "-o", tmp_path / "data", "--append", "-q")
    data = Dataset(tmp_path / "data")
    assert (data.n_parts, data.generation) == (2, 2)
    chordal("train", tmp_path / "data", tmp_path / "one", "-q", "--max-iter", "20")
    chordal("train", whole, "--task", "ner", tmp_path / "two", "-q", "--max-iter", "20")
    same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("suffix", ["crfsuite", "jsonl"])
def test_attributes(chordal, columns, tmp_path, suffix):
    items = tmp_path / f"items.{suffix}"
    if suffix == "crfsuite":
        lines = (
            "".join(f"{row[2]}\tw={row[0]}\tt\\:{row[1]}\tn:{i}.5\n" for i, row in enumerate(s))
            for s in SENTENCES
        )
        items.write_text("@weight:2\t" + "\n".join(lines))
    else:
        records = (
            {"tokens": [[f"w={row[0]}", row[1]] for row in s], "labels": [row[2] for row in s]}
            for s in SENTENCES
        )
        items.write_text("".join(json.dumps(record) + "\n" for record in records))
    chordal("prepare", items, "-o", tmp_path / "data")
    chordal("train", tmp_path / "data", tmp_path / "one", "-q", "--max-iter", "20")
    chordal("train", items, tmp_path / "two", "-q", "--max-iter", "20")
    same(tmp_path / "one", tmp_path / "two")


def test_validation_data_may_be_prepared(chordal, columns, tmp_path):
    paths, _, template = columns
    for path, name in zip(paths, ("one", "two"), strict=True):
        chordal("prepare", path, "-t", template, "-o", tmp_path / name, "-q")
    found = [
        json.loads(
            chordal(
                *("train", tmp_path / "one", "-d", held, tmp_path / "model", "--json"),
                *("--max-iter", "20", "--n-iter-no-change", "1"),
            )
        )
        for held in (paths[1], tmp_path / "two")
    ]
    for name in ("iterations", "objective", "validation_accuracy"):
        assert found[0][name] == found[1][name]


def test_info_of_a_data_set(chordal, refused, columns, tmp_path):
    _, whole, template = columns
    chordal("prepare", whole, "-t", template, "-o", tmp_path / "data", "-q")
    facts = json.loads(chordal("info", tmp_path / "data", "--json"))
    data = Dataset(tmp_path / "data")
    assert facts["for"] == "ChainCRF"
    assert sorted(facts["labels"]) == sorted({row[2] for s in SENTENCES for row in s})
    assert facts["sizes"]["variables"] == sum(map(len, SENTENCES))
    assert facts["sizes"]["bytes"] == data.n_bytes
    chordal("train", tmp_path / "data", tmp_path / "model", "-q", "--max-iter", "2")
    assert facts["sizes"]["attributes"] == load(tmp_path / "model").input_.n_columns
    assert facts["feature_template"].strip() == TEMPLATE.strip()
    assert "feature template:" in chordal("info", tmp_path / "data").decode()
    assert "no index.json" in refused("info", tmp_path)


def test_what_is_refused(refused, columns, tmp_path):
    paths, _, template = columns
    data = tmp_path / "data"
    assert "needs a template" in refused("prepare", paths[0], "-o", data, code=2)
    bad = tmp_path / "bad.txt"
    bad.write_text("a b c\nd\n")
    said = refused("prepare", paths[0], bad, "-t", template, "-o", data)
    assert "bad.txt" in said
    assert "line 2" in said or ":2" in said
    assert not os.path.exists(data)
    assert "no index.json" in refused("train", tmp_path, tmp_path / "model")


def test_files_with_other_columns_are_named(chordal, refused, columns, tmp_path):
    """The last column holds the labels: another column more moves it."""
    paths, _, template = columns
    wide = tmp_path / "wide.txt"
    wide.write_text("a b x O\n")
    data = tmp_path / "data"
    said = refused("prepare", *paths, wide, "-t", template, "-o", data)
    assert f"{wide}: it has 3 columns besides the labels, but {paths[0]} has 2" in said
    assert not os.path.exists(data)
    chordal("prepare", paths[0], "-t", template, "-o", data, "-q")
    said = refused("prepare", wide, "-t", template, "-o", data, "--append")
    assert "rows of 3 columns of text, but those that were read before have 2" in said
    assert Dataset(data).generation == 1
    chordal("prepare", wide, "-t", template, "-o", tmp_path / "other", "-q")
    with pytest.raises(ValueError, match=r"parts 1 and 0 differ: .*3 columns of text, but of 2"):
        ChainCRF(feature_template=FeatureTemplate(TEMPLATE)).fit([data, tmp_path / "other"])


def test_folds_of_a_data_set(chordal, refused, columns, tmp_path):
    paths, _, template = columns
    chordal("prepare", paths[0], "-t", template, "-o", tmp_path / "data", "-q")
    words = ["tune", tmp_path / "data", "--l2", "1", "--max-iter", "2"]
    assert "give --validation FILE, or the files" in refused(*words)
    chordal(*words, "--validation", paths[1], "-q")


def test_a_data_set_has_its_template(chordal, refused, columns, tmp_path):
    paths, _, template = columns
    chordal("prepare", paths[0], "-t", template, "-o", tmp_path / "data", "-q")
    said = refused("prepare", paths[0], "-t", template, "-o", tmp_path / "data")
    assert "use --append" in said
    model = tmp_path / "model"
    said = refused("train", tmp_path / "data", "-t", template, model, code=2)
    assert "is prepared" in said
    other = tmp_path / "other"
    other.write_text("U00:%x[0,0]\nB\n")
    said = refused("prepare", paths[1], "-t", other, "-o", tmp_path / "data", "--append")
    assert "another model" in said
