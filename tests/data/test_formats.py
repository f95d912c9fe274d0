"""Real files: known counts, and what is read is written back byte for byte."""

import gzip
import io

import pytest

from chordal.formats.conll import CoNLL

pytestmark = pytest.mark.data

# file, separator, comment, sequences, tokens: as the data sets' papers and tasks have them
FILES = [
    ("conll2000/train.txt.gz", None, None, 8936, 211_727),
    ("conll2000/test.txt.gz", None, None, 2012, 47_377),
    ("conll2002/esp.train.gz", None, None, 8323, 264_715),
    ("conll2002/esp.testa.gz", None, None, 1915, 52_923),
    ("conll2002/esp.testb.gz", None, None, 1517, 51_533),
    ("pos/ud_ewt_train.tsv.gz", "\t", "#", 12_544, 204_577),
    ("pos/ud_ewt_dev.tsv.gz", "\t", "#", 2001, 25_147),
    ("pos/ud_ewt_test.tsv.gz", None, None, 2077, 25_094),
    ("pos/nltk_dependency_treebank.tsv.gz", "\t", None, 3914, 94_084),
    ("seminars/seminars_train.tsv.gz", "\t", "#", 301, None),
    ("tools_examples/crfpp/seg.train.data.gz", None, None, None, None),  # U+3000 is a word
    ("tools_examples/crfpp/JapaneseNE.train.data.gz", None, None, None, None),
]
each_file = pytest.mark.parametrize(
    ("name", "separator", "comment", "n_sequences", "n_tokens"), FILES, ids=[f[0] for f in FILES]
)


@each_file
def test_counts_and_cells(require, name, separator, comment, n_sequences, n_tokens):
    path = require(name)
    columns = CoNLL(separator, comment=comment).load(path)
    assert n_sequences in (None, len(columns))
    assert n_tokens in (None, columns.n_rows)
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    tokens = [row for rows in columns.rows() for row in rows]
    for row, line in zip(tokens, columns.lines.tolist(), strict=True):
        text = lines[line - 1]
        assert row == (
            text.split("\t") if separator else text.split(" ") if "\t" not in text else row
        )
    others = set(range(1, len(lines) + 1)) - set(columns.lines.tolist())
    assert all(not lines[k - 1] or lines[k - 1].startswith("# doc") for k in others)


@each_file
def test_round_trip(require, name, separator, comment, n_sequences, n_tokens):
    path = require(name)
    text = gzip.decompress(path.read_bytes())
    target = io.BytesIO()
    conll = CoNLL(separator, comment=comment)
    conll.write(conll.read(path), target)
    if separator is None and b"\t" in text:
        text = text.replace(b"\t", b" ")
    assert target.getvalue().strip(b"\n") == text.replace(b"\n\n\n", b"\n\n").strip(b"\n")


@pytest.mark.parametrize("size", [1000, 30_000])
def test_blocks_hold_what_the_file_does(require, size):
    path = require("conll2002/esp.testb.gz")
    whole = CoNLL().load(path).rows()
    assert [s for block in CoNLL().blocks(path, size=size) for s in block.rows()] == whole
