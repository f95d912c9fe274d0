"""chordal tag: lines stay as they are, and answers are the library's."""

import json

import numpy as np
import pytest

from chordal import load
from chordal.formats import Record
from chordal.formats.arrow import Arrow
from chordal.formats.parquet import Parquet
from chordal.text import Columns

from .conftest import SENTENCES, as_text

BARE = as_text(SENTENCES, labels=False).encode()
FULL = as_text(SENTENCES).encode()


@pytest.fixture(scope="module")
def model(files):
    return load(files / "model")


def rows(n=2):
    return [[list(row[:n]) for row in sentence] for sentence in SENTENCES]


def test_labels_are_those_of_the_library(chordal, files, model):
    out = chordal("tag", files / "model", input=BARE).decode()
    found = [[line.split()[2] for line in s.split("\n")] for s in out.strip().split("\n\n")]
    assert found == model.predict(rows())


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        BARE.replace(b" ", b"\t"),
        BARE.replace(b"\n", b"\r\n"),
        b"\n\n \t\n" + BARE.replace(b"\n\n", b"\n\n\n \n"),
        BARE.replace(b"He PRP", b"-DOCSTART- -X-\n\nHe PRP"),
        BARE.replace(b" ", b"   "),
        BARE.replace(b"PRP", b"PRP  "),
        BARE.rstrip(b"\n"),
        b"-DOCSTART- O\n",
        b"\n",
        b"",
    ],
    ids=range(11),
)
@pytest.mark.parametrize("way", ["file", "pipe"])
def test_input_is_kept_byte_for_byte(chordal, files, tmp_path, text, way):
    path = tmp_path / "in.txt"
    path.write_bytes(text)
    out = chordal("tag", files / "model", *([path] if way == "file" else []), input=text)
    rows_seen = 0
    kept = []
    for line in out.splitlines(keepends=True):
        end = line[len(line.rstrip(b"\r\n")) :]
        body = line[: len(line) - len(end)]
        if body.strip() and not body.startswith(b"-DOCSTART-"):
            rows_seen += 1
            cut = max(body.rfind(b" "), body.rfind(b"\t"))
            assert body[cut + 1 :] in (b"O", b"B-NP", b"I-NP", b"B-VP", b"I-VP")
            body = body[: cut + 1].rstrip(b" \t") if text.count(b"   ") else body[:cut]
        kept.append(body + end)
    given = text if not text or text.endswith(b"\n") else text + b"\n"
    joined = b"".join(kept)
    if b"PRP  " in text:
        joined, given = joined.replace(b"PRP  ", b"PRP"), given.replace(b"PRP  ", b"PRP")
    assert joined == given
    assert rows_seen == (14 if b"pound" in text else 0)


def test_comments_are_kept(chordal, files):
    text = b"# one\n" + BARE.replace(b"\n\nthe", b"\n\n# two words\nthe") + b"# last\n"
    out = chordal("tag", files / "model", "--comment", "#", input=text)
    assert [line for line in out.splitlines() if line.startswith(b"#")] == [
        b"# one",
        b"# two words",
        b"# last",
    ]


def test_a_byte_order_mark_is_left_out(chordal, files):
    plain = chordal("tag", files / "model", input=BARE)
    assert chordal("tag", files / "model", input=b"\xef\xbb\xbf" + BARE) == plain


def test_separators(chordal, files):
    spaced = BARE.replace(b" ", b"\t").replace(b"pound", b"pound sterling")
    out = chordal("tag", files / "model", "--separator", "tab", input=spaced)
    assert b"pound sterling\tNN\tI-NP\n" in out
    assert "expected 2 columns" in run_refused(files, spaced)


def run_refused(files, text):
    from .conftest import run

    done = run("tag", files / "model", input=text)
    assert done.returncode == 1
    return done.stderr.decode()


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_compressed_in_and_out(chordal, files, tmp_path, compression):
    import bz2
    import gzip
    import lzma

    module = {"gz": gzip, "bz2": bz2, "xz": lzma}[compression]
    source, target = tmp_path / f"in.{compression}", tmp_path / f"out.txt.{compression}"
    source.write_bytes(module.compress(BARE))
    assert chordal("tag", files / "model", source, "-o", target) == b""
    assert module.decompress(target.read_bytes()) == chordal("tag", files / "model", input=BARE)


def test_marginals(chordal, files, model):
    out = chordal("tag", files / "model", "--all-marginals", input=BARE).decode()
    lines = [line.split() for line in out.splitlines() if line]
    expected = np.concatenate(model.predict_marginals(rows()))
    labels = np.concatenate(model.predict(rows()))
    classes = model.classes_.tolist()
    for line, chances, label in zip(lines, expected, labels, strict=True):
        assert line[2] == label
        assert float(line[3]) == pytest.approx(chances[classes.index(label)], abs=1e-6)
        named = dict(cell.rsplit(":", 1) for cell in line[4:])
        assert list(named) == classes
        assert [float(p) for p in named.values()] == pytest.approx(chances.tolist(), abs=1e-6)
    short = chordal("tag", files / "model", "--marginals", input=BARE).decode()
    assert [x.split() for x in short.splitlines() if x] == [line[:4] for line in lines]


def test_k_best(chordal, files, model):
    out = chordal("tag", files / "model", "-k", "3", input=b"\n" + BARE).decode()
    assert out.startswith("\n# 0 ")
    blocks = out.strip().split("\n\n")
    expected = [answer for ranked in model.k_best(rows(), 3) for answer in ranked]
    assert len(blocks) == len(expected) == 9
    for block, (labels, chance) in zip(blocks, expected, strict=True):
        head, *lines = block.split("\n")
        assert float(head.split()[2]) == pytest.approx(np.exp(chance), abs=1e-6)
        assert [line.split()[2] for line in lines] == labels


def test_method_and_constraint(chordal, files, model):
    text = b"narrow VB\n. .\nthe DT\n\n"
    for options, expected in (
        (["--method", "mpm"], {"method": "mpm"}),
        (["--constrain", "bio"], {"allowed_transitions": "bio"}),
    ):
        out = chordal("tag", files / "model", *options, input=text).decode()
        X = [[["narrow", "VB"], [".", "."], ["the", "DT"]]]
        assert [line.split()[2] for line in out.split("\n") if line] == model.predict(
            X, **expected
        )[0]
    first = chordal("tag", files / "model", "--constrain", "bio", input=b"narrow VB\n\n")
    assert not first.split()[2].startswith(b"I-")


def test_json_lines(chordal, files, model, tmp_path):
    path = tmp_path / "in.jsonl"
    lines = [{"tokens": sentence} for sentence in rows()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = chordal("tag", files / "model", path, "-m", "-k", "1").decode()
    found = [json.loads(line) for line in out.splitlines()]
    assert [line["labels"] for line in found] == model.predict(rows())
    assert [line["tokens"] for line in found] == rows()
    chances = model.predict_marginals(rows())
    assert found[0]["marginals"] == pytest.approx(chances[0].max(axis=1).tolist(), abs=0.2)
    ranked = json.loads(chordal("tag", files / "model", path, "-k", "2").splitlines()[0])["k_best"]
    expected = model.k_best(rows(), 2)[0]
    assert [r["labels"] for r in ranked] == [labels for labels, _ in expected]
    assert np.log([r["probability"] for r in ranked]) == pytest.approx([p for _, p in expected])


def test_crfsuite_items(chordal, refused, files, tmp_path):
    data = "".join(
        "".join(f"{label}\tw={word}\tp={tag}\n" for word, tag, label in s) + "\n" for s in SENTENCES
    )
    (tmp_path / "train.crfsuite").write_text(data)
    chordal("train", "-q", tmp_path / "train.crfsuite", tmp_path / "model")
    out = chordal("tag", tmp_path / "model", tmp_path / "train.crfsuite").decode()
    gold = "\n\n".join("\n".join(row[2] for row in s) for s in SENTENCES) + "\n\n"
    assert out == gold
    with_chances = chordal("tag", tmp_path / "model", tmp_path / "train.crfsuite", "-m").decode()
    assert with_chances.startswith("B-NP:0.")
    assert "cannot read files of columns" in refused("tag", tmp_path / "model", input=BARE)


def test_threads_change_nothing(chordal, files, tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(BARE * 6000)
    one = chordal("tag", files / "model", path)
    assert chordal("tag", files / "model", path, "-j", "3") == one
    assert one == chordal("tag", files / "model", input=BARE) * 6000


def test_codes_are_indices_into_classes(model):
    columns = Columns.from_sequences(rows())
    codes = model.predict_codes(columns)
    assert model.classes_[codes].tolist() == [label for s in model.predict(rows()) for label in s]


@pytest.mark.parametrize("scheme", ["iobes", "bilou"])
def test_a_scheme_that_the_labels_are_not_of(refused, files, scheme):
    message = refused("tag", files / "model", "--constrain", scheme, input=BARE)
    assert f"--constrain {scheme} is not the scheme of the labels" in message
    assert "the labels are of 'bio'" in message


def test_the_scheme_is_found(chordal, files, tmp_path):
    bilou = chordal(
        "convert", files / "train.txt", "-", "--from-scheme", "bio", "--to-scheme", "bilou"
    )
    words = ["train", "-q", "-t", files / "template", "-", tmp_path / "m"]
    chordal(*words, input=bilou)
    for model, scheme in ((files / "model", "bio"), (tmp_path / "m", "bilou")):
        texts = [
            chordal("tag", model, "--constrain", given, "--all-marginals", input=BARE)
            for given in ("auto", scheme)
        ]
        assert texts[0] == texts[1] != chordal("tag", model, "--all-marginals", input=BARE)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_tables_are_written_with_their_labels(chordal, refused, files, model, tmp_path, ending):
    pytest.importorskip("pyarrow", reason='needs "chordal[arrow]"')
    table = (Parquet if ending == "parquet" else Arrow)()
    source, found = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    labels = [["X"] * len(own) for own in SENTENCES]
    table.write(map(Record, rows(), labels), source)
    chordal("tag", files / "model", source, "-o", found)
    again = list(table.read(found))
    assert [record.rows for record in again] == rows()
    assert [record.labels for record in again] == model.predict(rows())
    message = refused("tag", files / "model", source, "-m", "-o", tmp_path / "none")
    assert "take labels alone" in message
    assert not (tmp_path / "none").exists()
