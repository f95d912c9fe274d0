"""Columns that do not fit the model, raw text, and other encodings."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from chordal import load
from chordal.formats import sentences, tokenize

from .conftest import SENTENCES, as_text

WORDS = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nB\n"


@pytest.fixture(scope="module")
def words(tmp_path_factory, chordal):
    """A folder with a model of words alone, in three schemes, and one of parts of speech."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "template").write_text(WORDS)
    text = "\n\n".join("\n".join(f"{r[0]} {r[2]}" for r in s) for s in SENTENCES) + "\n\n"
    (folder / "bio.txt").write_text(text)
    for scheme in ("iobes", "iob1"):
        to = ["--from-scheme", "bio", "--to-scheme", scheme]
        chordal("convert", folder / "bio.txt", folder / f"{scheme}.txt", *to)
    text = "\n\n".join("\n".join(f"{r[0]} {r[1]}" for r in s) for s in SENTENCES) + "\n\n"
    (folder / "pos.txt").write_text(text)
    for name in ("bio", "iobes", "iob1", "pos"):
        path = folder / f"{name}.txt"
        chordal("train", "-q", "-t", folder / "template", "--l2", "0.1", path, folder / name)
    return folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The\ndeficit\n", "it has 1 columns, but the model was trained with 2"),
        (
            "The deficit will\nnarrow now .\n",
            "it has 3 columns (the last holds none of its labels)",
        ),
        ("The DT x B-NP\n", "it has 4 columns, but the model was trained with 2"),
        ("The deficit will narrow .\nHe reckons .\n", "for raw text give --text"),
        ("The deficit will narrow soon .\n\n", "for raw text give --text"),
    ],
)
def test_other_columns_than_in_training(refused, files, tmp_path, text, words):
    (tmp_path / "in.txt").write_text(text)
    message = refused("tag", files / "model", tmp_path / "in.txt")
    assert words in message
    assert "in.txt" in message
    message = refused("tag", files / "model", input=text.encode())
    assert "<stdin>" in message


def test_other_columns_in_evaluate_and_json(refused, files, tmp_path):
    (tmp_path / "in.txt").write_text("The DT x B-NP\n")
    message = refused("evaluate", "--model", files / "model", tmp_path / "in.txt")
    assert "it has 3 columns besides the labels, but the model was trained with 2" in message
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"tokens": [["The", "DT", "x"]]}) + "\n")
    assert "its tokens have 3 columns" in refused("tag", files / "model", path)


def test_the_columns_are_kept_by_a_warm_start_and_compact(files, chordal, tmp_path):
    words = ["train", "-q", "-t", files / "template", files / "train.txt", tmp_path / "m"]
    chordal(*words, "--compact", "0.1", "--warm-start", files / "model")
    assert json.loads(chordal("info", tmp_path / "m", "--json"))["columns"] == 2


TEXT = "The current deficit will narrow. The pound is, “He reckons the deficit” .\n\n  he \n"


@pytest.mark.parametrize("scheme", ["bio", "iobes", "iob1"])
def test_entities_of_raw_text(chordal, words, scheme):
    out = chordal("tag", words / scheme, "--text", input=TEXT.encode()).decode()
    found = [json.loads(line) for line in out.splitlines()]
    assert [line["text"] for line in found] == TEXT.split("\n")[:3]
    assert found[1]["entities"] == []
    crf = load(words / scheme)
    own = sentences(found[0]["text"])
    assert len(own) == 2
    entities = iter(found[0]["entities"])
    for sentence in own:
        X = [[[token.text] for token in sentence]]
        (labels,) = crf.predict(X, allowed_transitions=scheme)
        last = {"bio": "BI", "iob1": "BI", "iobes": "ES"}[scheme]
        for t, label in enumerate(labels):
            after = labels[t + 1] if t + 1 < len(labels) else "O"
            goes_on = after[0] == "I" and after[1:] == label[1:]
            if label[0] not in last or (scheme != "iobes" and goes_on):
                continue
            entity = next(entities)
            assert entity["end"] == sentence[t].end
            assert entity["label"] == label[2:]
            first = next(k for k, token in enumerate(sentence) if token.start == entity["start"])
            assert entity["text"] == found[0]["text"][entity["start"] : entity["end"]]
            if scheme == "iob1":
                assert entity["probability"] is None
            else:
                chance = crf.span_probabilities(X, [[(first, t + 1, label[2:])]])[0][0]
                assert entity["probability"] == pytest.approx(chance, rel=1e-9)
    assert next(entities, None) is None
    assert len(found[0]["entities"]) >= 3


def test_tokens_of_raw_text_where_labels_are_no_tags(chordal, words):
    out = chordal("tag", words / "pos", "--text", input=b"the pound is.").decode()
    (found,) = [json.loads(line) for line in out.splitlines()]
    crf = load(words / "pos")
    X = [[["the"], ["pound"], ["is"], ["."]]]
    assert [one["label"] for one in found["tokens"]] == crf.predict(X)[0]
    chances = np.max(crf.predict_marginals(X)[0], axis=1)
    assert [one["probability"] for one in found["tokens"]] == pytest.approx(chances, rel=1e-6)
    assert [one["text"] for one in found["tokens"]] == ["the", "pound", "is", "."]


def test_text_needs_a_model_of_words(refused, files):
    message = refused("tag", files / "model", "--text", input=b"He reckons\n")
    assert "--text gives one column (the words), but the model was trained with 2" in message
    message = refused("tag", files / "model", "--text", "-m", input=b"He\n", code=2)
    assert "--text goes with --constrain and --encoding only" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  a\tb ", ["a b"]),
        ("It cost 1,000.50 on 12/3/99 at 12:30.", ["It cost 1,000.50 on 12/3/99 at 12:30 ."]),
        ("J. Smith and Mr. Fox met. They left!", ["J . Smith and Mr . Fox met .", "They left !"]),
        ("“Leave.” He went.", ["“ Leave . ”", "He went ."]),
        ("Visit http://a.org/b?c=d, or a.b@c.org.", ["Visit http://a.org/b?c=d , or a.b@c.org ."]),
        ("in the U.S. today... yes", ["in the U.S. today ... yes"]),
        ("l'Oréal (Saint-Denis)", ["l'Oréal ( Saint-Denis )"]),
        ("3.5 is e.g. a number. ok", ["3.5 is e.g. a number . ok"]),
    ],
)  # fmt: skip
def test_tokens(text, expected):
    assert [" ".join(token.text for token in own) for own in sentences(text)] == expected
    flat = tokenize(text)
    assert all(text[token.start : token.end] == token.text for token in flat)
    assert "".join(token.text for token in flat) == "".join(text.split())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(chordal, refused, tmp_path, encoding):
    """The same model as from UTF-8; what is tagged keeps its encoding."""
    text = as_text([[("Zürich", "ist", "B-Ort"), ("schön", "ja", "O")], [("Köln", "x", "B-Ort")]])
    template = "U0:%x[0,0]\nU1:ü%x[0,1]\nB\n"
    for name, code in (("utf8", "utf-8"), ("other", encoding)):
        (tmp_path / f"{name}.txt").write_bytes(text.encode(code))
        (tmp_path / f"{name}.tpl").write_bytes(template.encode(code))
        words = ["train", "-q", "--encoding", code, "-t", tmp_path / f"{name}.tpl"]
        chordal(*words, tmp_path / f"{name}.txt", tmp_path / name)
    assert (tmp_path / "utf8").read_bytes().count("Zürich".encode()) == 1
    np.testing.assert_array_equal(
        load(tmp_path / "utf8").weights_, load(tmp_path / "other").weights_
    )
    tagged = chordal("tag", tmp_path / "other", tmp_path / "other.txt", "--encoding", encoding)
    expected = chordal("tag", tmp_path / "utf8", tmp_path / "utf8.txt")
    assert tagged.decode(encoding) == expected.decode()
    words = ["evaluate", "--model", tmp_path / "utf8", tmp_path / "other.txt"]
    assert b"accuracy: 100.00%" in chordal(*words, "--encoding", encoding)
    target = tmp_path / "out.txt"
    chordal("convert", tmp_path / "other.txt", target, "--encoding", encoding)
    assert target.read_text() == text
    assert "UTF-8" in refused(*words) or "UTF-16" in refused(*words)
    assert "unknown encoding 'x'" in refused(*words, "--encoding", "x", code=2)
    message = refused("evaluate", "--model", tmp_path / "utf8", tmp_path / "other.txt",
                      "--encoding", "ascii")  # fmt: skip
    assert "other.txt: not ascii at byte" in message


def test_a_compressed_template(chordal, files, tmp_path):
    (tmp_path / "t.gz").write_bytes(gzip.compress((files / "template").read_bytes()))
    chordal("train", "-q", "-t", tmp_path / "t.gz", files / "train.txt", tmp_path / "m")
    assert (load(tmp_path / "m").weights_ == load(files / "model").weights_).all()


def test_a_model_is_written_as_its_name_says(chordal, files, tmp_path):
    target = tmp_path / "x.crfsuite"
    items = "".join(
        "".join(f"{label}\tw={word}\n" for word, _, label in s) + "\n" for s in SENTENCES
    )
    (tmp_path / "train.crfsuite").write_text(items)
    chordal("train", "-q", tmp_path / "train.crfsuite", tmp_path / "m")
    chordal("convert", tmp_path / "m", target)
    assert target.read_bytes().startswith(b"lCRF")
    out = json.loads(chordal("info", target, "--json"))
    assert (out["written by"], out["parameters"], out["fit"]) == ("crfsuite", None, None)
    assert b"l2" not in chordal("info", target)
    chordal("convert", target, tmp_path / "back")  # nobody knows how it was trained
    assert json.loads(chordal("info", tmp_path / "back", "--json"))["parameters"] is None
    assert json.loads(chordal("info", tmp_path / "m", "--json"))["parameters"]["l2"] == 1.0
    chordal("convert", tmp_path / "m", tmp_path / "y.crfsuite", "--to", "chordal")
    assert load(tmp_path / "y.crfsuite").l2 == 1.0


@pytest.mark.parametrize("unit", ["a+", "a-.", "' \" ", "www.!", "a@a-.", "@@a", "1,2/"])
def test_time_grows_with_the_text_alone(unit):
    """A megabyte; where time grows with its square, it takes an hour."""
    program = f"from chordal.formats import sentences\nsentences({unit!r} * {10**6 // len(unit)})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
