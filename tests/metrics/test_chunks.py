"""Chunks: conlleval's counts on legal and illegal tags, and the strict schemes."""

import os
import random
import subprocess

import pytest

from chordal.metrics import (
    Chunk,
    chunk_f1,
    chunk_precision,
    chunk_recall,
    chunk_scores,
    chunks,
    conlleval_report,
    sequence_counts,
)

# True tags, predicted tags (| between sequences), and what conlleval, version of 2004-01-26,
# printed on them: chunks that are true, found and correct, and the accuracy in percent.
RECORDED = [
    ("B-X I-X O", "B-X I-X O", (1, 1, 1), 100.00),
    ("B-X I-X O", "B-X O O", (1, 1, 0), 66.67),
    ("B-X I-X", "B-X B-X", (1, 2, 0), 50.00),
    ("I-X I-X", "B-X I-X", (1, 1, 1), 50.00),
    ("O I-X", "O B-X", (1, 1, 1), 50.00),
    ("B-X I-Y", "B-X B-Y", (2, 2, 2), 50.00),
    ("B-X I-Y I-Y", "B-X I-Y I-X", (2, 3, 1), 66.67),
    ("S-X S-X", "S-X S-X", (1, 1, 1), 100.00),
    ("S-X S-Y", "B-X B-Y", (2, 2, 2), 0.00),
    ("B-X E-X B-X E-X", "B-X E-X B-X E-X", (1, 1, 1), 100.00),
    ("B-X I-X E-X", "B-X I-X I-X", (1, 1, 1), 66.67),
    ("E-X E-X", "E-X E-X", (2, 2, 2), 100.00),
    ("E-X I-X", "E-X I-X", (2, 2, 2), 100.00),
    ("E-X I-X", "I-X I-X", (2, 1, 0), 50.00),
    ("B I O", "B I O", (1, 1, 1), 100.00),
    ("B M E", "B M E", (1, 1, 1), 100.00),
    ("S S", "S S", (0, 0, 0), 100.00),
    ("[-X ]-X", "[-X ]-X", (2, 2, 2), 100.00),
    ("B-X [-X", "B-X [-X", (2, 2, 1), 100.00),
    ("B-X [-X", "B-X I-X", (2, 1, 1), 50.00),
    (". .", ". .", (0, 0, 0), 100.00),
    ("B-X .-X O", "B-X .-X O", (1, 1, 1), 100.00),
    ("B-X .-X", "B-X I-X", (1, 1, 0), 50.00),
    ("O-X S-X", "O-X S-X", (0, 0, 0), 100.00),
    ("B-X-Y I-X-Y", "B-X-Y I-X-Y", (1, 1, 1), 100.00),
    ("B-0 I-0", "B I", (1, 1, 1), 100.00),
    ("NN VB", "NN VB", (0, 0, 0), 100.00),
    ("B-X O | I-X", "B-X O | B-X", (2, 2, 2), 66.67),
    ("B-X | I-X", "B-X | I-X", (2, 2, 2), 100.00),
    ("B M | O B", "B M | O B", (2, 2, 1), 100.00),
    ("B S | S B O", "B S | S B O", (1, 1, 1), 100.00),
    ("U-X L-X", "U-X L-X", (1, 1, 1), 100.00),
    ("-X -X", "-X O", (1, 1, 0), 50.00),
    ("B-X I-X B-X", "I-X I-X B-X", (2, 2, 2), 66.67),
]

REPORT = """\
processed 9 tokens with 5 phrases; found: 5 phrases; correct: 2.
accuracy:  66.67%; precision:  40.00%; recall:  40.00%; FB1:  40.00
                 : precision:   0.00%; recall:   0.00%; FB1:   0.00  1
                 : precision:   0.00%; recall:   0.00%; FB1:   0.00  1
             MISC: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
               NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
a-type-of-more-than-17: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
           日本: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
"""


def sequences(text):
    return [part.split() for part in text.split("|")]


@pytest.mark.parametrize(("true", "pred", "counts", "accuracy"), RECORDED)
def test_recorded_counts(true, pred, counts, accuracy):
    scores = chunk_scores(sequences(true), sequences(pred))
    overall = scores.overall
    assert (overall.true, overall.found, overall.correct) == counts
    assert round(100 * scores.accuracy, 2) == accuracy


def test_recorded_report():
    true = sequences("B-NP I-NP O B-VP | B I B-a-type-of-more-than-17 | B-日本 O")
    pred = sequences("B-NP I-NP O B-MISC | B O B-a-type-of-more-than-17 | B-日本 I-日本")
    assert conlleval_report(true, pred) == REPORT
    assert str(chunk_scores(true, pred)) == REPORT.rstrip("\n")


def test_counts_of_the_walk(corpora, walk_conlleval):
    for y_true, y_pred in corpora:
        scores = chunk_scores(y_true, y_pred)
        tokens, right, true, found, correct = walk_conlleval(y_true, y_pred)
        assert (scores.n_tokens, scores.n_correct_tokens) == (tokens, right)
        overall = scores.overall
        totals = [counter.total() for counter in (true, found, correct)]
        assert [overall.true, overall.found, overall.correct] == totals
        by_type = {name: (s.true, s.found, s.correct) for name, s in scores.types.items()}
        names = {name for name in [*true, *found] if true[name] or found[name]}
        assert by_type == {name: (true[name], found[name], correct[name]) for name in names}


def test_the_script(corpora):
    """Character by character, where the environment says where the script is."""
    script = os.environ.get("CHORDAL_CONLLEVAL")
    if not script:
        pytest.skip("CHORDAL_CONLLEVAL is not set: it names the file of the script conlleval")
    for y_true, y_pred in corpora:
        text = ""
        for t, p in zip(y_true, y_pred, strict=True):
            text += "".join(f"word {a} {b}\n" for a, b in zip(t, p, strict=True)) + "\n"
        printed = subprocess.check_output(["perl", script], input=text.encode()).decode()
        assert conlleval_report(y_true, y_pred) == printed


def test_one_chunk_for_each_that_is_counted(corpora):
    for y_true, y_pred in corpora:
        found = [chunks(labels) for labels in y_true]
        assert sum(map(len, found)) == chunk_scores(y_true, y_pred).overall.true
        for labels, of_sequence in zip(y_true, found, strict=True):
            limits = [t for chunk in of_sequence for t in (chunk.start, chunk.end)]
            assert limits == sorted(limits)
            assert all(0 <= chunk.start < chunk.end <= len(labels) for chunk in of_sequence)
            for chunk in of_sequence:
                type_at_start = labels[chunk.start].partition("-")[2]
                assert chunk.type == ("" if type_at_start == "0" else type_at_start)
                assert "O" not in labels[chunk.start : chunk.end]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("O O", []),
        ("B-X I-X O B-X", [(0, 2, "X"), (3, 4, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("I-X I-X I-Y", [(0, 2, "X"), (2, 3, "Y")]),
        ("O I-X O", [(1, 2, "X")]),
        ("B-X I-X E-X S-Y", [(0, 3, "X"), (3, 4, "Y")]),
        ("S-X S-X B-X E-X", [(0, 4, "X")]),
        ("E-X E-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B I O I", [(0, 2, ""), (3, 4, "")]),
        ("[-X ]-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X [-X", [(0, 1, "X"), (1, 2, "X")]),
        ("B-X .-X . I-X", [(0, 3, "X"), (3, 4, "X")]),
        ("NN VB", []),
    ],
)
def test_chunks_by_hand(labels, expected):
    assert chunks(labels.split()) == [Chunk(*chunk) for chunk in expected]


def test_usual_tags_share_their_chunks(iob_corpus):
    """Where tags are B-, I- and O, correct chunks are those that both sides have."""
    y_true, y_pred = iob_corpus
    true, pred = ([set(chunks(labels)) for labels in y] for y in (y_true, y_pred))
    both = sum(len(t & p) for t, p in zip(true, pred, strict=True))
    overall = chunk_scores(y_true, y_pred).overall
    sizes = sum(map(len, true)), sum(map(len, pred))
    assert 0 < both < min(sizes)
    assert (overall.true, overall.found, overall.correct) == (*sizes, both)
    assert chunk_precision(y_true, y_pred) == both / sizes[1]
    assert chunk_recall(y_true, y_pred) == both / sizes[0]
    assert chunk_f1(y_true, y_pred) == pytest.approx(2 * both / sum(sizes), rel=1e-15)


def test_counts_per_sequence_sum_up(corpora):
    for y_true, y_pred in corpora:
        overall = chunk_scores(y_true, y_pred).overall
        counts = sequence_counts("chunk_precision", y_true, y_pred)
        assert len(counts.numerator) == len(y_true)
        assert (counts.numerator.sum(), counts.denominator.sum()) == (
            overall.correct,
            overall.found,
        )
        assert sequence_counts("chunk_recall", y_true, y_pred).denominator.sum() == overall.true
        assert sequence_counts("chunk_f1", y_true, y_pred).value == overall.f1


# ------------------------------------------------------------------------------- strict schemes

LAST_AND_SINGLE = {"bio": "", "iobes": "ES", "bilou": "LU"}


def legal_chunks(labels, scheme):
    """Every span that the scheme writes with exactly these tags, found by trying all of them."""
    found = []
    for start in range(len(labels)):
        for end in range(start + 1, len(labels) + 1):
            kind = labels[start].partition("-")[2]
            if written(end - start, kind, scheme) != labels[start:end]:
                continue
            goes_on = labels[end : end + 1] == [f"I-{kind}"] and scheme == "bio"
            if not goes_on:
                found.append(Chunk(start, end, kind))
    return found


def written(size, kind, scheme):
    if scheme == "bio":
        return [f"B-{kind}"] + [f"I-{kind}"] * (size - 1)
    last, single = LAST_AND_SINGLE[scheme]
    if size == 1:
        return [f"{single}-{kind}"]
    return [f"B-{kind}"] + [f"I-{kind}"] * (size - 2) + [f"{last}-{kind}"]


@pytest.mark.parametrize("scheme", LAST_AND_SINGLE)
def test_strict_schemes(scheme):
    rng = random.Random(scheme)
    prefixes = "BI" + LAST_AND_SINGLE[scheme]
    pool = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("X", "Y", "0"))]
    seen = 0
    for _ in range(200):
        y_true = [[rng.choice(pool) for _ in range(rng.randint(1, 8))] for _ in range(5)]
        y_pred = [[a if rng.random() < 0.7 else rng.choice(pool) for a in s] for s in y_true]
        true, pred = ([legal_chunks(labels, scheme) for labels in y] for y in (y_true, y_pred))
        assert [chunks(labels, scheme) for labels in y_true] == true
        both = [len(set(t) & set(p)) for t, p in zip(true, pred, strict=True)]
        overall = chunk_scores(y_true, y_pred, scheme=scheme).overall
        assert (overall.true, overall.found) == (sum(map(len, true)), sum(map(len, pred)))
        assert overall.correct == sum(both)
        counts = sequence_counts("chunk_recall", y_true, y_pred, scheme=scheme)
        assert counts.numerator.tolist() == both
        seen += sum(both)
    assert seen > 100


def test_schemes_keep_neighbours_apart_that_conlleval_joins():
    labels = ["S-X", "S-X", "B-X", "E-X", "B-X", "E-X"]
    assert len(chunks(labels)) == 1
    assert len(chunks(labels, "iobes")) == 4


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("labels", ["B-NP", [1, 2], ["B-NP", None], [float("nan")], [["B-NP"]]])
def test_chunks_of_no_tags(labels):
    with pytest.raises(TypeError, match="labels must be a list of strings such as 'B-NP', got"):
        chunks(labels)


def test_chunks_of_nothing():
    assert chunks([]) == []


def test_labels_that_are_no_strings():
    with pytest.raises(TypeError, match=r"y_pred\[1\]\[0\] is 3; labels must be strings such as"):
        chunk_scores([["B-X"], ["O"]], [["B-X"], [3]])


def test_unknown_scheme():
    with pytest.raises(ValueError, match=r"scheme must be one of 'conlleval', 'bio'.* got 'BIO'"):
        chunk_scores([["B-X"]], [["B-X"]], scheme="BIO")


def test_a_prefix_that_the_scheme_lacks():
    with pytest.raises(ValueError, match=r"'bio' has the prefixes O, B, I, got the label 'S-X'"):
        chunk_scores([["B-X"]], [["S-X"]], scheme="bio")


def test_to_dict():
    scores = chunk_scores([["B-X", "O", "B-Y"]], [["B-X", "O", "O"]])
    assert scores.to_dict() == {
        "accuracy": 2 / 3,
        "n_tokens": 3,
        "overall": {
            "precision": 1.0, "recall": 0.5, "f1": 2 / 3, "true": 2, "found": 1, "correct": 1
        },
        "types": {
            "X": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "true": 1, "found": 1, "correct": 1},
            "Y": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "true": 1, "found": 0, "correct": 0},
        },
    }  # fmt: skip
