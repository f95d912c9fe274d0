"""Models, evidence and results of the UAI format, and libDAI's factor graphs."""

import gzip
import io
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import FormatError
from chordal.formats.uai import (
    apply_evidence,
    condition_on,
    read_evidence,
    read_fg,
    read_map,
    read_mar,
    read_model,
    read_pr,
    read_uai,
    write_evidence,
    write_fg,
    write_map,
    write_mar,
    write_pr,
    write_uai,
)
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials
from chordal.structures import Chain
from chordal.testing.generators import MODELS

# Three variables with 2, 2 and 3 labels, the example of the format's description.
EXAMPLE = """MARKOV
3
2 2 3
2
2 0 1
3 0 1 2

4
 4.000 2.400
 1.000 0.000

12
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
 1.8750 4.0000 3.3330
 2.0000 2.0000 3.4000
"""


def read(text, reader=read_uai):
    return reader(io.BytesIO(text.encode() if isinstance(text, str) else text))


def written(writer, *arguments, **options):
    file = io.BytesIO()
    writer(*arguments, file, **options)
    return file.getvalue()


def product_of_functions(text):
    """The model as a table over all variables, by a reading of the format of its own."""
    words = iter(text.split()[1:])
    n = int(next(words))
    counts = [int(next(words)) for _ in range(n)]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    joint = np.ones(counts)
    for scope in scopes:
        next(words)
        for labels in itertools.product(*(range(counts[v]) for v in scope)):
            index = [slice(None)] * n
            for v, label in zip(scope, labels, strict=True):
                index[v] = label
            joint[tuple(index)] *= float(next(words))
    return joint


def joint(potentials):
    counts = potentials.structure.label_counts
    all_labels = itertools.product(*map(range, counts))
    return np.exp([potentials.score(labels)[0] for labels in all_labels]).reshape(counts)


def test_a_model_is_the_product_of_its_functions():
    assert_allclose(joint(read(EXAMPLE)), product_of_functions(EXAMPLE), rtol=1e-14)


MIXED = """BAYES 3 2 1 3  6  0  1 2  2 2 0  1 2  1 1  3 1 0 2
1 0.5   3 .1 0 2e-1   6 1 2 3 4 5 6  3 1. +3 2  1 7  6 1 1 2 1 0 9"""


def test_constants_and_functions_of_one_variable():
    p = read(MIXED)
    assert_allclose(joint(p), product_of_functions(MIXED), rtol=1e-13)
    assert [tuple(p.structure.scope(k)) for k in range(2)] == [(2, 0), (1, 0, 2)]


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("kind", ["uai", "fg"])
def test_a_written_model_reads_the_same(name, kind):
    batch = MODELS[name](np.random.default_rng(0))
    if batch.structure.n_examples != 1:
        with pytest.raises(ValueError, match="one model, got a batch of"):
            written(write_uai, batch)
        return
    write, reader = (write_uai, read_uai) if kind == "uai" else (write_fg, read_fg)
    p = read(written(write, batch), reader)
    assert_array_equal(p.structure.label_counts, batch.structure.label_counts)
    kept = [k for k in range(batch.structure.n_cliques) if batch.structure.orders[k] > 1]
    assert p.structure.n_cliques == len(kept)
    scale = np.abs(batch.tables[np.isfinite(batch.tables)]).max(initial=1.0)
    for new, old in enumerate(kept):
        assert_array_equal(p.structure.scope(new), batch.structure.scope(old))
        assert_allclose(p.table(new), batch.table(old), rtol=0, atol=1e-12 * scale)
    if len(kept) == batch.structure.n_cliques:
        assert_allclose(p.unary, batch.unary, rtol=1e-12, atol=1e-12)


def test_numbers_beyond_float64():
    p = read("MARKOV 1 4 1 1 0 4 1e-400 0 1e400 0e-999")
    assert_allclose(p.unary, [-400 * np.log(10), -np.inf, 400 * np.log(10), -np.inf], rtol=1e-12)
    assert_allclose(read(written(write_uai, p)).unary, p.unary, rtol=1e-12)


def test_fg_counts_the_first_variable_fastest():
    p = read("# a comment\n1\n\n3\n4 1 2\n2 3 2\n3\n0 1\n# another\n7 2\n10 5.5\n", read_fg)
    assert p.structure.label_counts.tolist() == [1, 3, 2, 1, 2]
    expected = np.zeros((2, 3, 2))  # index = x4 + 2 x1 + 6 x2
    expected[0, 0, 0], expected[1, 0, 1], expected[0, 2, 1] = 1, 2, 5.5
    assert_allclose(np.exp(p.table(0)), expected, rtol=1e-15)


def test_bayesian_networks():
    text = "BAYES 3  2 3 1  3  1 0  2 0 1  2 1 2   2 .25 .75   6 .1 .2 .7 0 1 0   3 1 1 1"
    p = read(text)
    assert_allclose(ExhaustiveInference().log_partition(p), 0.0, atol=1e-15)
    out = written(write_uai, p, kind="BAYES")
    assert out.startswith(b"BAYES\n3\n2 3 1\n3\n1 0\n2 0 1\n2 1 2\n")
    assert_allclose(joint(read(out)), joint(p), rtol=1e-14)
    with pytest.raises(ValueError, match=r"function of variables \(0, 1\) is none of variable 1"):
        written(write_uai, read(EXAMPLE), kind="BAYES")
    with pytest.raises(ValueError, match="variable 0 has none"):
        written(write_uai, read("BAYES 2 2 2 1 2 0 1 4 .5 .5 .5 .5"), kind="BAYES")
    with pytest.raises(ValueError, match="kind must be one of 'MARKOV', 'BAYES'; got 'markov'"):
        written(write_uai, p, kind="markov")


def test_files_compressed_or_not(tmp_path):
    p = read(EXAMPLE)
    for name, write in (("a.uai", write_uai), ("a.uai.gz", write_uai), ("a.fg.gz", write_fg)):
        write(p, tmp_path / name)
        assert_allclose(joint(read_model(tmp_path / name)), joint(p), rtol=1e-14)
    assert gzip.decompress((tmp_path / "a.uai.gz").read_bytes()).startswith(b"MARKOV\n3\n2 2 3\n")
    whole = (tmp_path / "a.uai.gz").read_bytes()
    (tmp_path / "cut.uai.gz").write_bytes(whole[:-12])
    with pytest.raises(FormatError, match=r"cut\.uai\.gz: .* truncated"):
        read_uai(tmp_path / "cut.uai.gz")


def test_a_model_cut_short_anywhere_is_refused():
    words = EXAMPLE.split()
    for n in range(len(words)):
        with pytest.raises(FormatError, match="cut short"):
            read(" ".join(words[:n]))
    graph = [2, 1, 0, 2, 2, 0, 1, 1, 2, 2, 0, 1, 2, 2, 1, 3, 4]
    for n in range(len(graph)):
        with pytest.raises(FormatError, match="cut short"):
            read(" ".join(map(str, graph[:n])), read_fg)


BAD_MODELS = [
    ("", "1:1: expected MARKOV or BAYES, but the file ends"),
    ("# no\n", "1:1: a model begins with MARKOV or BAYES, got '#'"),
    ("MARKOV\n0", "2:1: the number of variables must be at least 1, got 0"),
    ("MARKOV\n-3", "2:1: the number of variables must be a whole number, got '-3'"),
    ("MARKOV\n2.0", "got '2.0'"),
    (
        "MARKOV\n99999999999",
        r"expected 99,999,999,999 words \(labels of a variable\), but the file",
    ),
    ("MARKOV\n1" + 30 * "0", "must be a whole number, got '1000"),
    ("MARKOV 1 0 0", "labels of a variable must be at least 1, got 0"),
    ("MARKOV 1 999999999999 0", "the variables have 999,999,999,999 labels, more than"),
    ("MARKOV 2 2 2\n123456789\n1 0", "2:1|expected 246,913,578 words"),
    ("MARKOV 2 2 2\n1\n2 0 2\n4 1 1 1 1", "3:5: a variable of function 0 must be .* at most 1"),
    ("MARKOV 2 2 2\n1\n2 1 1\n4 1 1 1 1", "function 0 names a variable twice"),
    ("MARKOV 2 2 2 1 9999999 0 1", "expected 9,999,999 words"),
    ("MARKOV 2 2 2 1 2 0 1\n5 1 1 1 1 1", r"2:1: function 0 must have 4 values.*\(2 x 2\), got 5"),
    ("MARKOV 2 2 2 1 2 0 1\n4 1 1 -1 1", "2:7: a value of function 0 must not be negative"),
    ("MARKOV 2 2 2 1 2 0 1 4 1 nan 1 1", "a value of function 0 must be a number, got 'nan'"),
    ("MARKOV 2 2 2 1 2 0 1 4 1 inf 1 1", "got 'inf'"),
    ("MARKOV 2 2 2 1 2 0 1 4 1 1_0 1 1", "got '1_0'"),
    ("MARKOV 2 2 2 1 2 0 1 4 1 \xff 1 1", "must be a number, got"),
    ("MARKOV 2 2 2 1 2 0 1 4 1 1 1 1 7", "expected the end of the file, got '7'"),
    (
        "MARKOV 40 " + "9 " * 40 + "1 40 " + " ".join(map(str, range(40))) + " 7",
        "must have more than 85 values",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_MODELS)
def test_bad_models(text, message):
    with pytest.raises(FormatError, match=message) as error:
        read(text)
    assert str(error.value).startswith("<stream>:")


BAD_GRAPHS = [
    ("0", "the number of factors must be at least 1"),
    ("1 0 1 0 3.0", "the factors have no variables"),
    ("1 1 0 2 3", "the number of values of factor 0 must be .* at most 2, got 3"),
    ("1 2 0 0 2 2 0", "factor 0 names a variable twice"),
    ("2 1 0 2 0  1 0 3 0", "variable 0 has 3 labels in factor 1, but 2 before"),
    ("1 1 0 2 1\n2 1", "2:1: an index of factor 0 must be .* at most 1, got 2"),
    ("1 1 0 2 2  1 1  1 1", "factor 0 has index 1 twice"),
    ("1 1 0 2 2  1 1  0 -1", "must not be negative"),
    ("1 5 0 1 2 3 4 99 99 99 99 99 0", "have more than 1,000,000 cells"),
    ("1 1 99999999999 2 0", "a variable of factor 0 must be .* at most"),
    ("1 1 0 2 0 5", "expected the end"),
]


@pytest.mark.parametrize(("text", "message"), BAD_GRAPHS)
def test_bad_factor_graphs(text, message):
    with pytest.raises(FormatError, match=message):
        read(text, read_fg)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", [{}]),
        ("2 3 1 0 2", [{3: 1, 0: 2}]),
        ("2\n3 1\n0 2\n\n", [{3: 1, 0: 2}]),
        ("1\n2 3 1 0 2", [{3: 1, 0: 2}]),
        ("1\n0", [{}]),
        ("3\n1 5 0\n0\n1 4 1", [{5: 0}, {}, {4: 1}]),
        ("2 1 5 0 0", [{1: 5, 0: 0}]),  # fits both forms; one line
        ("2\n1 5 0\n0", [{5: 0}, {}]),
        ("2 1 1 1 1", [{1: 1}]),
    ],
)
def test_evidence(text, expected):
    assert read(text, read_evidence) == expected


def test_evidence_after_none_is_ignored_aloud():
    with pytest.warns(UserWarning, match="<stream>:2: the rest of the file is ignored"):
        assert read("0\n2 0\n", read_evidence) == [{}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: expected the number of observed variables, but the file ends"),
        ("x", "must be a whole number, got 'x'"),
        ("2 3 1", "expected 4 words .* cut short"),
        ("2 3 1 4 0 5", "expected the end of the file, got '5'"),
        ("2 3 1 3 0", "variable 3 is observed with labels 1 and 0"),
        ("1 3 -1", "got '-1'"),
    ],
)
def test_bad_evidence(text, message):
    with pytest.raises(FormatError, match=message):
        read(text, read_evidence)


def test_evidence_is_applied():
    p = read(EXAMPLE)
    with_evidence = apply_evidence(p, {1: 0, 2: 1})
    expected = product_of_functions(EXAMPLE)
    assert_allclose(
        np.exp(ExhaustiveInference().log_partition(with_evidence)), expected[:, 0, 1].sum()
    )
    assert np.isfinite(p.unary).all()
    smaller = condition_on(p, {1: 0, 2: 1})
    assert smaller.structure.label_counts.tolist() == [2, 1, 1]
    assert_allclose(joint(smaller).ravel(), expected[:, 0, 1], rtol=1e-14)
    assert condition_on(p, {}) is p
    assert read(written(write_evidence, {1: 0, 2: 1}), read_evidence) == [{1: 0, 2: 1}]
    for evidence, message in [
        ({3: 0}, "variable 3 is observed, but the model has variables 0 to 2"),
        ({2: 3}, "variable 2 is observed with label 3, but it has labels 0 to 2"),
        ({-1: 0}, "variable -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            apply_evidence(p, evidence)
        with pytest.raises(ValueError, match=message):
            condition_on(p, evidence)


def test_results():
    assert read(written(write_pr, -12.25), read_pr) == -12.25
    assert read(written(write_pr, -np.inf), read_pr) == -np.inf
    assert read("PR\n1\n3.5", read_pr) == 3.5
    assert read("PR\n-BEGIN-\n1\n3.5\n-BEGIN-\n1\n4.5", read_pr) == 4.5
    marginals = [np.array([1 / 3, 2 / 3]), np.array([1.0]), np.array([0.1, 0.2, 0.7])]
    for found in (
        read(written(write_mar, marginals), read_mar),
        read("MAR 1 3 2 .333333333333333333 .666666666666666666 1 1 3 .1 .2 .7", read_mar),
    ):
        for row, expected in zip(found, marginals, strict=True):
            assert_allclose(row, expected, rtol=1e-15)
    assert_array_equal(read(written(write_map, [0, 2, 1]), read_map), [0, 2, 1])
    assert_array_equal(read("MAP\n1\n3 0 2 1", read_map), [0, 2, 1])
    assert_array_equal(read("MAP\n1 4", read_map), [4])


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_pr, "MAR\n1", "1:1: expected PR, got 'MAR'"),
        (read_pr, "PR", "cut short"),
        (read_pr, "PR 1 2 3", "expected the end"),
        (read_mar, "MAR 2 2 .5 .5", "cut short"),
        (read_mar, "MAR 1 2 .5 1.5", "probabilities of variable 0 must be between 0 and 1"),
        (read_map, "MAP 3 0 1", "cut short"),
        (read_map, "MAP 2 0 x", "a label must be a whole number"),
    ],
)
def test_bad_results(reader, text, message):
    with pytest.raises(FormatError, match=message):
        read(text, reader)


def test_a_longer_model():
    n = 3000
    rng = np.random.default_rng(0)
    p = Potentials(Chain([n], n_labels=2), rng.normal(size=2 * n), rng.normal(size=4))
    again = read(written(write_uai, p))
    assert_allclose(again.unary, p.unary, rtol=0, atol=1e-14)
    assert_allclose(again.tables.reshape(-1, 4)[-1], p.tables, rtol=0, atol=1e-14)
