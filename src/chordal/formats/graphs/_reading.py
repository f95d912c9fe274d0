"""Graphs from JSON Lines; every length and number is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.formats._files import Place
from chordal.formats._json import read_values, word_of

Link = tuple[str, str]


class Graph(NamedTuple):
    """One graph. With nodes of several types, all but the names of types are dicts by type.

    Attributes
    ----------
    nodes : array [n_nodes, n_features], or list of dicts or lists of str
    edges : int64 [n_edges, 2]; by pairs of types
    edge_features : as `nodes`, or None
    labels : list, None where one is not known; or None
    positions : float64 [n_nodes, 2], where nodes are drawn; or None
    names : list of str, what nodes are called; or None
    """

    nodes: Any
    edges: Any
    edge_features: Any = None
    labels: Any = None
    positions: Any = None
    names: Any = None

    @property
    def x(self) -> tuple[Any, ...]:
        """The example as `GraphCRF` and `TypedGraphCRF` take it."""
        plain = (self.nodes, self.edges)
        return plain if self.edge_features is None else (*plain, self.edge_features)


def read_graphs(source: Place) -> Iterator[Graph]:
    r"""Read graphs from a path, a binary stream or "-", compressed or not.

    A line is an object with these keys:

    - nodes: for each node a list of numbers (all of one length), a string, a list of strings, or
      an object of attributes;
    - edges: pairs of whole numbers, the nodes that are joined, counted from 0;
    - edge_features (optional): features of edges, as of nodes;
    - labels (optional): a label per node, or null;
    - positions (optional): x and y of each node;
    - names (optional): a string per node.

    Nodes of several types are an object from type to list, and so are labels, positions and names.
    Edges and their features are then objects too, with keys such as "word-text". Other keys are
    ignored.

    Examples
    --------
    >>> import io
    >>> line = b'{"nodes": [[0.1], [0.9]], "edges": [[0, 1]], "labels": ["a", "b"]}\n'
    >>> graph, = read_graphs(io.BytesIO(line))
    >>> graph.nodes, graph.edges.tolist(), graph.labels
    (array([[0.1],
           [0.9]]), [[0, 1]], ['a', 'b'])
    """
    return read_values(source, _graph)


def _graph(value: object) -> Graph:
    if not isinstance(value, dict):
        raise ValueError(f"a line must be a JSON object, got {word_of(value)}")
    if "nodes" not in value:
        raise ValueError(f"there is no key 'nodes'; there are: {', '.join(value) or 'none'}")
    return _typed(value) if isinstance(value["nodes"], dict) else _plain(value)


def _plain(value: Mapping[str, Any]) -> Graph:
    nodes = _rows(value["nodes"], "nodes")
    edges = _edges(value.get("edges") or [], "edges", len(nodes), len(nodes))
    given = value.get("edge_features")
    return Graph(
        nodes,
        edges,
        None if given is None else _rows(given, "edge_features", len(edges)),
        *_beside(value, "", len(nodes)),
    )


def _typed(value: Mapping[str, Any]) -> Graph:
    """Nodes by type; edges by pairs of types."""
    nodes = {kind: _rows(own, f"nodes {kind!r}") for kind, own in value["nodes"].items()}
    sizes = {kind: len(own) for kind, own in nodes.items()}
    links = {f"{a}-{b}": (a, b) for a in nodes for b in nodes}
    if len(links) < len(nodes) ** 2:
        raise ValueError(f"pairs of the types {', '.join(map(repr, nodes))} cannot be told apart")
    edges: dict[Link, Any] = {}
    for key, own in _object(value.get("edges") or {}, "edges").items():
        a, b = _link(links, key, "edges")
        edges[a, b] = _edges(own, f"edges {key!r}", sizes[a], sizes[b])
    features: dict[Link, Any] | None = None
    if value.get("edge_features") is not None:
        features = {}
        for key, own in _object(value["edge_features"], "edge_features").items():
            link = _link(links, key, "edge_features")
            n = len(edges.get(link, ()))
            features[link] = _rows(own, f"edge_features {key!r}", n)
    parts: list[Any] = []
    for k, name in enumerate(("labels", "positions", "names")):
        if value.get(name) is None:
            parts.append(None)
            continue
        given = _object(value[name], name)
        odd = [kind for kind in given if kind not in nodes]
        if odd:
            raise ValueError(f"{name!r} has the type {odd[0]!r}, which no node has")
        parts.append({t: _beside({name: own}, t, sizes[t])[k] for t, own in given.items()})
    return Graph(nodes, edges, features, *parts)


def _link(links: Mapping[str, Link], key: str, name: str) -> Link:
    if key not in links:
        some = ", ".join(map(repr, list(links)[:6])) or "none"
        raise ValueError(f"{name!r} has the key {key!r}, but pairs of types are: {some}")
    return links[key]


def _beside(value: Mapping[str, Any], kind: str, n: int) -> tuple[Any, Any, Any]:
    """Labels, positions and names of nodes; None for those that are not given."""
    of = f" of {kind!r}" if kind else ""
    labels, positions, names = (value.get(key) for key in ("labels", "positions", "names"))
    if labels is not None:
        for label in _list(labels, f"labels{of}", n):
            if isinstance(label, (list, dict)):
                raise ValueError(f"labels{of} must be strings, numbers or null, got {label!r:.60}")
    if positions is not None:
        positions = _matrix(_list(positions, f"positions{of}", n), f"positions{of}", 2)
    if names is not None:
        for name in _list(names, f"names{of}", n):
            if not isinstance(name, str):
                raise ValueError(f"names{of} must be strings, got {word_of(name)}")
    return labels, positions, names


def _rows(given: object, name: str, n: int | None = None) -> Any:
    """Rows of features: an array, or lists of strings and objects."""
    rows = _list(given, name, n)
    if rows and all(_are_numbers(row) for row in rows):
        return _matrix(rows, name, len(rows[0]))
    out = [[row] if isinstance(row, str) else row for row in rows]
    for k, row in enumerate(out):
        words = isinstance(row, list) and all(isinstance(own, str) for own in row)
        if not words and not isinstance(row, dict):
            raise ValueError(
                f"{name}[{k}] must be numbers as in all rows, a string, a list of strings or an "
                f"object; got {row!r:.60}"
            )
    return out


def _are_numbers(row: object) -> bool:
    return isinstance(row, list) and bool(row) and all(type(v) in (float, int) for v in row)


def _matrix(rows: list[Any], name: str, width: int) -> NDArray[np.float64]:
    for k, row in enumerate(rows):
        if not _are_numbers(row) or len(row) != width:
            raise ValueError(f"{name}[{k}] must be {width} numbers, got {row!r:.60}")
    try:
        array = np.array(rows, dtype=np.float64).reshape(len(rows), width)
    except OverflowError:
        raise ValueError(f"{name} has numbers that are too large") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array


def _edges(given: object, name: str, n_from: int, n_to: int) -> NDArray[np.int64]:
    rows = _list(given, name)
    for k, pair in enumerate(rows):
        whole = isinstance(pair, list) and len(pair) == 2 and all(type(v) is int for v in pair)
        if not whole:
            raise ValueError(f"{name}[{k}] must be a pair of whole numbers, got {pair!r:.60}")
        if not (0 <= pair[0] < n_from and 0 <= pair[1] < n_to):
            raise ValueError(
                f"{name}[{k}] must join nodes below {n_from} and {n_to}, got {pair!r:.60}"
            )
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _list(given: object, name: str, n: int | None = None) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"{name} must be a list, got {word_of(given)}")
    if n is not None and len(given) != n:
        raise ValueError(f"{name} must have {n} entries, got {len(given)}")
    return given


def _object(given: object, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{name!r} must be an object by types as nodes are, got {word_of(given)}")
    return given
