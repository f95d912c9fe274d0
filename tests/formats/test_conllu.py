"""CoNLL-U: ranges, empty nodes and comments; what is read is written back byte for byte."""

import io

import pytest

from chordal._errors import FormatError
from chordal.formats import Record
from chordal.formats.conllu import CoNLLU

# The format's own examples: a contraction, an elided verb, and words with spaces.
TEXT = """\
# newdoc id = a
# sent_id = 1
# text = vámonos al\tmar
1-2	vámonos	_	_	_	_	_	_	_	_
1	vamos	ir	VERB	_	Mood=Imp|Number=Plur	0	root	_	_
2	nos	nosotros	PRON	_	Case=Acc	1	obj	_	_
3-4	al	_	_	_	_	_	_	_	SpaceAfter=No
3	a	a	ADP	_	_	5	case	_	_
4	el	el	DET	_	_	5	det	_	_
5	mar	mar	NOUN	_	_	1	obl	_	_

# sent_id = 2
0.1	it	it	PRON	_	_	_	_	2:nsubj	CopyOf=-1
1	Sue	Sue	PROPN	NNP	_	2	nsubj	2:nsubj	_
2	likes	like	VERB	VBZ	_	0	root	0:root	_
3	20 000	20 000	NUM	CD	_	2	obj	2:obj	_
3.1	likes	like	VERB	VBZ	_	_	_	2:conj	_
3.2	x	x	X	X	_	_	_	_	_

""".encode()


def read(text, *options):
    return list(CoNLLU(*options).read(io.BytesIO(text)))


def written(records, *options):
    target = io.BytesIO()
    CoNLLU(*options).write(records, target)
    return target.getvalue()


@pytest.mark.parametrize("label", ["upos", "deprel", None])
def test_what_is_read_is_written_back(label):
    assert written(read(TEXT, "all", label), "all", label) == TEXT
    assert written(read(TEXT.replace(b"\n", b"\r\n"), "all", label), "all", label) == TEXT


def test_words_labels_and_the_rest():
    first, second = read(TEXT)
    assert first.rows == [["vamos"], ["nos"], ["a"], ["el"], ["mar"]]
    assert first.labels == ["VERB", "PRON", "ADP", "DET", "NOUN"]
    assert first.comments == ["# newdoc id = a", "# sent_id = 1", "# text = vámonos al\tmar"]
    assert [(n, line.split("\t")[0]) for n, line in first.extras] == [(0, "1-2"), (2, "3-4")]
    assert second.rows[2] == ["20 000"]
    assert [(n, line.split("\t")[0]) for n, line in second.extras] == [
        (0, "0.1"), (3, "3.1"), (3, "3.2"),
    ]  # fmt: skip


def test_chosen_columns():
    first, _ = read(TEXT, ["form", "lemma", "upos"], "deprel")
    assert first.rows[0] == ["vamos", "ir", "VERB"]
    assert first.labels[0] == "root"
    text = written([first], ["form", "lemma", "upos"], "deprel")
    assert b"\n1\tvamos\tir\tVERB\t_\t_\t_\troot\t_\t_\n" in text


def test_predicted_labels_replace_the_column():
    first, _ = read(TEXT, "all")
    text = written([first._replace(labels=["X"] * 5)], "all")
    assert [r.labels for r in read(text, "all")] == [["X"] * 5]


def word(n, form="a", **cells):
    row = [str(n), form, *["_"] * 8]
    for k, cell in cells.items():
        row[int(k[1:])] = cell
    return "\t".join(row) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\n", ":1: expected 10 columns separated by tabs, found 2: 1\ta"),
        (word(1).replace("\t", " "), ":1: expected 10 columns separated by tabs, found 1"),
        (word(1) + word(3), ":2:1: expected the id 2, a range from it or an empty node, got '3'"),
        (word(1) + "\n" + word(2), ":3:1: expected the id 1"),
        (word(1) + word("3-4"), "got '3-4'"),
        (word(1) + word("0.1"), "got '0.1'"),
        (word("1.x"), "got '1.x'"),
        (word("x"), "got 'x'"),
        (word(1, c4=""), ":1:9: xpos is empty; write _"),
        (word(1, form=""), ":1:3: form is empty; write _"),
        ("# alone\n\n" + word(1), ":1: a sentence without words"),
        (word("1-2"), ":1: a sentence without words"),
        (word(1) + "# late\n", ":2: expected 10 columns"),
    ],
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        list(CoNLLU().read(path))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (Record([["a", "b"]], ["X"]), "word 1 must be a list of 1 strings"),
        (Record(["a"], ["X"]), "word 1 must be a list"),
        (Record([["a\tb"]], ["X"]), "cannot be a cell"),
        (Record([["a"]], [""]), "cannot be a cell"),
        (Record([], []), "no empty sentences"),
        (Record([["a"]], ["X"], ["# a\nb"]), "comments must be single lines"),
        (Record([["a"]], ["X"], weight=2.0), "cannot store weights"),
    ],
)
def test_what_cannot_be_written(record, match):
    with pytest.raises(ValueError, match=match):
        written([record])


def test_bad_options():
    for columns in (["word"], "form"):
        with pytest.raises(ValueError, match="column"):
            CoNLLU(columns)
    with pytest.raises(ValueError, match="there is no column 'tag'; there are: id, form"):
        CoNLLU(label="tag")
