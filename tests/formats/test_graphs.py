"""Graphs in JSON Lines."""

import io
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal import GraphCRF, TypedGraphCRF
from chordal._errors import FormatError
from chordal.formats.graphs import Graph, read_graphs, write_graphs

PLAIN = {"nodes": [[0.5, 1], [2, 3]], "edges": [[0, 1]], "labels": ["a", None]}
TYPED = {
    "nodes": {"word": ["red", ["w=b", "x"], {"w=c": 2}], "text": [[1.0]]},
    "edges": {"word-word": [[0, 2]], "word-text": [[0, 0], [2, 0]]},
    "edge_features": {"word-text": [[0.1], [0.2]]},
    "labels": {"word": ["N", "V", None], "text": [3]},
}


def read(*values):
    lines = "".join(json.dumps(own) + "\n" for own in values)
    return list(read_graphs(io.BytesIO(lines.encode())))


def test_plain_graphs():
    more = {"positions": [[0, 1], [2.5, 3]], "names": ["p", "q"], "edge_features": [[7.0]]}
    first, second, alone = read(PLAIN, {**PLAIN, **more, "other": 1}, {"nodes": ["a"]})
    assert_array_equal(first.nodes, [[0.5, 1.0], [2.0, 3.0]])
    assert_array_equal(first.edges, [[0, 1]])
    assert first.labels == ["a", None]
    assert len(first.x) == 2
    assert len(second.x) == 3
    assert_array_equal(second.positions, [[0.0, 1.0], [2.5, 3.0]])
    assert second.names == ["p", "q"]
    assert alone.nodes == [["a"]]
    assert alone.edges.shape == (0, 2)


def test_graphs_with_types():
    (graph,) = read(TYPED)
    assert graph.nodes["word"] == [["red"], ["w=b", "x"], {"w=c": 2}]
    assert_array_equal(graph.edges["word", "text"], [[0, 0], [2, 0]])
    assert_array_equal(graph.x[2]["word", "text"], [[0.1], [0.2]])
    assert graph.labels == {"word": ["N", "V", None], "text": [3]}


@pytest.mark.parametrize("value", [PLAIN, TYPED])
def test_what_is_written_is_read(value, tmp_path):
    graphs = read(value, value)
    path = tmp_path / "graphs.jsonl.gz"
    assert write_graphs(graphs, path) == 2
    again = io.BytesIO()
    write_graphs(read_graphs(path), again)
    once = io.BytesIO()
    write_graphs(graphs, once)
    assert again.getvalue() == once.getvalue()
    assert json.loads(once.getvalue().splitlines()[0])["labels"] == value["labels"]


def test_models_take_them():
    rng = np.random.default_rng(0)
    edges = np.array([(0, 1), (1, 2)])
    made = [Graph(rng.normal(size=(3, 2)), edges, labels=["a", "b", "a"]) for _ in range(3)]
    file = io.BytesIO()
    write_graphs(made, file)
    file.seek(0)
    found = list(read_graphs(file))
    X = [own.x for own in found]
    model = GraphCRF().fit(X, [own.labels for own in found])
    plain = GraphCRF().fit([(own.nodes, edges) for own in made], [own.labels for own in made])
    assert_array_equal(model.weights_, plain.weights_)
    (graph,) = read(TYPED)
    links = [("word", "word"), ("word", "text")]
    typed = TypedGraphCRF(node_types=["word", "text"], edge_types=links)
    typed.fit([graph.x] * 2, [graph.labels, {**graph.labels, "text": [4]}])
    assert set(typed.predict([graph.x])[0]) == {"word", "text"}


def bad_graphs():
    nodes = {"nodes": [[1.0], [2.0]]}
    yield [], "a line must be a JSON object, got a list"
    yield {"edges": []}, "there is no key 'nodes'"
    yield {"nodes": 3}, "nodes must be a list, got a number"
    yield {"nodes": [[1.0], [2.0, 3.0]]}, r"nodes\[1\] must be 1 numbers"
    yield {"nodes": [[1.0], "a"]}, r"nodes\[0\] must be numbers as in all rows"
    yield {"nodes": [[True]]}, r"nodes\[0\] must be numbers"
    yield {"nodes": [[10**400]]}, "too large"
    yield {**nodes, "edges": [[0, 2]]}, r"edges\[0\] must join nodes below 2 and 2"
    yield {**nodes, "edges": [[-1, 0]]}, "must join nodes below"
    yield {**nodes, "edges": [[0, 1.0]]}, "pair of whole numbers"
    yield {**nodes, "edges": [[0, 1, 1]]}, "pair of whole numbers"
    yield {**nodes, "edges": [[0, 10**30]]}, "must join nodes below"
    yield {**nodes, "edges": [[0, 1]], "edge_features": []}, "edge_features must have 1 entries"
    yield {**nodes, "labels": ["a"]}, "labels must have 2 entries, got 1"
    yield {**nodes, "labels": ["a", ["b"]]}, "labels must be strings, numbers or null"
    yield {**nodes, "positions": [[0, 1], [2]]}, r"positions\[1\] must be 2 numbers"
    yield {**nodes, "names": ["a", 1]}, "names must be strings, got a number"
    yield {"nodes": {"w": [[1.0]]}, "edges": []} | {"edges": [[0, 0]]}, "'edges' must be an object"
    yield {"nodes": {"w": [[1.0]]}, "edges": {"w-t": []}}, "the key 'w-t', but pairs of types are"
    yield {"nodes": {"w": [[1.0]]}, "edges": {"w-w": [[0, 1]]}}, "must join nodes below 1 and 1"
    yield {"nodes": {"w": [[1.0]]}, "labels": {"t": []}}, "has the type 't', which no node has"
    yield {"nodes": {"w": [[1.0]]}, "labels": {"w": []}}, "labels of 'w' must have 1 entries"
    yield {"nodes": {"a-b": [], "c": [], "a": [], "b-c": []}}, "cannot be told apart"


@pytest.mark.parametrize(("value", "message"), list(bad_graphs()))
def test_bad_graphs(value, message):
    with pytest.raises(FormatError, match=message) as caught:
        read(PLAIN, value)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"nodes": [[1e999]]}', "finite"),
        (b'{"nodes": [[NaN]]}', "finite"),
        (b'{"nodes": [[1.0]', "not JSON"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"nodes": ["\xff"]}', "UTF-8"),
    ],
)
def test_bad_lines(line, message):
    with pytest.raises(FormatError, match=message):
        list(read_graphs(io.BytesIO(line)))


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "graphs.jsonl"
    with pytest.raises(ValueError, match="cannot write graph 1"):
        write_graphs([Graph(np.array([[np.nan]]), [])], path)
    assert not path.exists()
