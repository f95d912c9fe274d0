"""What is written is read as the same, in every format."""

import io
import os
import pickle
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chordal
from chordal import ChainCRF
from chordal.compat.crfsuite_model import read_crfsuite, write_crfsuite
from chordal.compat.wapiti_model import read_wapiti, write_wapiti
from chordal.formats import FORMATS, SCHEMES, Record, convert_scheme, uai
from chordal.formats.graphs import Graph, read_graphs, write_graphs
from chordal.inference import INFERENCE
from chordal.text import FeatureTemplate

from .strategies import factor_graphs, graphs, usual
from .test_training import fitted, sequences

word = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1)
cells = word.filter(lambda text: not text.startswith("#"))


def written_and_read(form, records):
    target = io.BytesIO()
    form.write(records, target)
    return list(form.read(io.BytesIO(target.getvalue())))


@given(data=st.data())
def test_conll(data):
    width = data.draw(st.integers(1, 3))
    row = st.lists(cells, min_size=width, max_size=width)
    rows = st.lists(st.tuples(row, cells), min_size=1, max_size=4)
    records = [
        Record([r for r, _ in own], [label for _, label in own])
        for own in data.draw(st.lists(rows, max_size=4))
    ]
    found = written_and_read(FORMATS.get("conll")(), records)
    assert [(list(r.rows), list(r.labels)) for r in found] == [
        (list(r.rows), list(r.labels)) for r in records
    ]


@given(data=st.data())
def test_conllu(data):
    form = FORMATS.get("conllu")()
    field = word.filter(lambda text: text != "_")
    n = len(form.columns) if isinstance(form.columns, (list, tuple)) else 1
    rows = st.lists(
        st.tuples(st.lists(field, min_size=n, max_size=n), field), min_size=1, max_size=4
    )
    records = [
        Record([r for r, _ in own], [label for _, label in own])
        for own in data.draw(st.lists(rows, max_size=4))
    ]
    found = written_and_read(form, records)
    assert [(list(r.rows), list(r.labels)) for r in found] == [
        (list(r.rows), list(r.labels)) for r in records
    ]


@pytest.mark.parametrize("name", ["arrow", "parquet"])
def test_tables(name):
    pytest.importorskip("pyarrow")

    @given(
        records=st.lists(
            st.lists(st.tuples(word, word), min_size=1, max_size=3), min_size=1, max_size=3
        )
    )
    def check(records):
        given_records = [
            Record([[token] for token, _ in own], [label for _, label in own]) for own in records
        ]
        found = written_and_read(FORMATS.get(name)(), given_records)
        assert [(list(map(list, r.rows)), list(r.labels)) for r in found] == [
            (list(r.rows), list(r.labels)) for r in given_records
        ]

    check()


number = st.floats(allow_nan=False, allow_infinity=False)


@given(data=st.data())
def test_graphs_in_lines_of_json(data):
    def graph(n):
        node = st.integers(0, n - 1)
        nodes = data.draw(
            st.lists(st.lists(number, min_size=2, max_size=2), min_size=n, max_size=n)
        )
        edges = data.draw(st.lists(st.tuples(node, node), max_size=4))
        labels = data.draw(st.lists(st.none() | word, min_size=n, max_size=n))
        return Graph(np.array(nodes), edges, labels=labels)

    made = [graph(n) for n in data.draw(st.lists(st.integers(1, 4), max_size=3))]
    file = io.BytesIO()
    assert write_graphs(made, file) == len(made)
    found = list(read_graphs(io.BytesIO(file.getvalue())))
    assert len(found) == len(made)
    for a, b in zip(found, made, strict=True):
        np.testing.assert_array_equal(a.nodes, b.nodes)
        assert np.asarray(a.edges).tolist() == np.reshape(b.edges, (-1, 2)).tolist()
        assert list(a.labels) == b.labels


label = word.filter(lambda text: not text.startswith("@"))  # which begins a line of weights
attributes = st.dictionaries(word, st.floats(allow_nan=False, allow_infinity=False), min_size=1)


@pytest.mark.parametrize("name", ["jsonl", "crfsuite"])
def test_attributes(name):
    @given(
        records=st.lists(
            st.lists(st.tuples(attributes, label), min_size=1, max_size=3), min_size=1, max_size=3
        ),
        weight=st.floats(0.1, 10),
    )
    def check(records, weight):
        given_records = [
            Record([dict(r) for r, _ in own], [label for _, label in own], (), weight)
            for own in records
        ]
        found = written_and_read(FORMATS.get(name)(), given_records)
        assert len(found) == len(given_records)
        for a, b in zip(found, given_records, strict=True):
            assert list(a.labels) == list(b.labels)
            assert a.weight == b.weight
            for row, expected in zip(a.rows, b.rows, strict=True):
                own = row if isinstance(row, dict) else dict.fromkeys(row, 1.0)
                assert own == expected

    check()


@pytest.mark.parametrize("kind", ["uai", "fg"])
def test_factor_graphs(kind):
    @given(p=st.one_of(factor_graphs(usual), graphs(usual)))
    def check(p):
        target = io.BytesIO()
        getattr(uai, f"write_{kind}")(p, target)
        found = getattr(uai, f"read_{kind}")(io.BytesIO(target.getvalue()))
        exact = INFERENCE.resolve("junction_tree")
        if kind == "fg" and found.structure.n_variables < p.structure.n_variables:
            return  # a variable without scores is not in such a file
        close = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(exact.log_partition(found), exact.log_partition(p), **close)
        np.testing.assert_allclose(exact.map(found).score, exact.map(p).score, **close)

    check()


@given(evidence=st.dictionaries(st.integers(0, 99), st.integers(0, 9)))
def test_evidence(evidence):
    target = io.BytesIO()
    uai.write_evidence(evidence, target)
    assert uai.read_evidence(io.BytesIO(target.getvalue())) == [evidence]


@given(
    log10=st.floats(-1e6, 1e6),
    labels=st.lists(st.integers(0, 50), min_size=1),
    rows=st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=4),
)
def test_results(log10, labels, rows):
    target = io.BytesIO()
    uai.write_pr(log10, target)
    assert uai.read_pr(io.BytesIO(target.getvalue())) == pytest.approx(log10, rel=1e-12)
    target = io.BytesIO()
    uai.write_map(labels, target)
    assert uai.read_map(io.BytesIO(target.getvalue())).tolist() == labels
    target = io.BytesIO()
    uai.write_mar(rows, target)
    for own, expected in zip(uai.read_mar(io.BytesIO(target.getvalue())), rows, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-6, atol=1e-9)


@given(data=sequences())
def test_models(data):
    X, _ = data
    crf = fitted(ChainCRF(max_iter=3), *data)
    with tempfile.TemporaryDirectory() as folder:
        chordal.save(crf, os.path.join(folder, "model"))
        loaded = chordal.load(os.path.join(folder, "model"))
    for other in (loaded, pickle.loads(pickle.dumps(crf))):
        assert other.weights_.tobytes() == crf.weights_.tobytes()
        assert other.predict(X) == crf.predict(X)
        for a, b in zip(other.predict_marginals(X), crf.predict_marginals(X), strict=True):
            assert a.tobytes() == b.tobytes()


TOOLS = {
    "crfsuite": (write_crfsuite, read_crfsuite, {}),
    "wapiti": (
        write_wapiti,
        read_wapiti,
        {"feature_template": FeatureTemplate("u:%x[0,0]\nb\n", "wapiti")},
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_models_of_other_tools(tool):
    write, read, parameters = TOOLS[tool]
    names = st.text("abcdé日:", min_size=1, max_size=3)

    @given(
        data=st.lists(
            st.lists(st.tuples(names, st.sampled_from("xyz")), min_size=1, max_size=4),
            min_size=1,
            max_size=3,
        )
    )
    def check(data):
        data = [*data, [("a", "x"), ("b", "y")]]  # two labels at least
        X = [[[name] for name, _ in own] for own in data]
        crf = ChainCRF(max_iter=3, **parameters)
        fitted(crf, X, [[label for _, label in own] for own in data])
        with tempfile.TemporaryDirectory() as folder:
            write(crf, os.path.join(folder, "model"))
            other = read(os.path.join(folder, "model"))
        order = [list(other.classes_).index(label) for label in crf.classes_]
        for found, expected in zip(
            other.predict_marginals(X), crf.predict_marginals(X), strict=True
        ):
            np.testing.assert_allclose(found[:, order], expected, rtol=0, atol=1e-6)

    check()


@given(data=sequences())
def test_prepared_data_sets(data):
    X, y = data
    crf = fitted(ChainCRF(max_iter=3), X, y)
    with tempfile.TemporaryDirectory() as folder:
        kept = ChainCRF().prepare(os.path.join(folder, "set"), X, y)
        other = fitted(ChainCRF(max_iter=3), kept, None)
    assert other.weights_.tobytes() == crf.weights_.tobytes()


@given(
    chunks=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["PER", "LOC", None])), max_size=6)
)
def test_schemes(chunks):
    """Every scheme holds all chunks, and gives them back."""
    labels = []
    for n, kind in chunks:
        labels += ["O"] * n if kind is None else [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
    for name in SCHEMES:
        there = convert_scheme(labels, "bio", name)
        assert list(convert_scheme(there, name, "bio")) == labels
