"""TypedGraphCRF: label graphs with nodes of several types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from chordal._validate import check_choice, check_sequences
from chordal.estimators._crf import BaseCRF
from chordal.features import TABLES, CliqueTemplate, Reader, length_of
from chordal.structures import repeated_edge

Link = tuple[str, str]


@final
@dataclass(eq=False, repr=False, kw_only=True)
class TypedGraphCRF(BaseCRF):
    """Conditional random field over graphs with nodes of several types, joined by edges.

    Each node type has its own features and labels, such as the words and the topic of a text. Edges
    have types too: each edge type has weights for all pairs of labels of its two node types, and
    for edge features. Labels, marginals and known labels are dicts by type. The groups of weights
    are the node types, and the edge types as in "word-text".

    Parameters
    ----------
    node_types : list of str
    edge_types : list of pairs of str
        The two node types of each edge type: ("word", "text") for edges from words to texts.
    tables : {"symmetric", "full", "antisymmetric", "potts"}, default="symmetric"
        Form of the weights of edges within one node type; see `GraphCRF`. Others are "full".
    fit_intercept : bool, default=True
        Whether labels and pairs of labels have constant weights besides those of features.

    Attributes
    ----------
    classes_ : dict of arrays, the labels of each node type

    Examples
    --------
    Words are nouns or verbs; their text is about sport or science:

    >>> words = np.array([[1.0, 0.1], [0.2, 0.9], [0.8, 0.3]])
    >>> nodes = {"word": words, "text": np.array([[0.3]])}
    >>> edges = {("word", "word"): [(0, 1), (1, 2)], ("word", "text"): [(0, 0), (1, 0), (2, 0)]}
    >>> other = {"word": words[:2], "text": np.array([[-0.4]])}
    >>> X = [(nodes, edges), (other, {("word", "text"): [(0, 0), (1, 0)]})]
    >>> y = [{"word": ["N", "V", "N"], "text": ["sport"]}]
    >>> y += [{"word": ["N", "V"], "text": ["science"]}]
    >>> links = [("word", "word"), ("word", "text")]
    >>> crf = TypedGraphCRF(node_types=["word", "text"], edge_types=links, l2=0.1).fit(X, y)
    >>> crf.predict(X[:1])
    [{'word': ['N', 'V', 'N'], 'text': ['sport']}]
    >>> crf.predict_marginals(X[1:])[0]["text"].round(2), crf.classes_["text"]
    (array([[0.78, 0.22]]), array(['science', 'sport'], dtype='<U7'))
    >>> crf.template_weights("word-text")["intercept"].shape
    (2, 2)

    Edge features are a third dict; known labels are a dict by type:

    >>> seen = {("word", "text"): np.array([[0.5], [1.0], [0.2]])}
    >>> more = TypedGraphCRF(node_types=["word", "text"], edge_types=links)
    >>> more = more.fit([(nodes, edges, seen)] * 2, [y[0], {**y[0], "text": ["science"]}])
    >>> more.predict([(nodes, edges, seen)], allowed_labels=[{"text": ["science"]}])[0]["text"]
    ['science']
    """

    node_types: Sequence[str] = ()
    edge_types: Sequence[Link] = ()
    tables: str = "symmetric"
    fit_intercept: bool = True
    pairs: str = "seen"
    min_freq: int = 0
    ignore_label: object = None

    def _types(self) -> tuple[str, ...]:
        return tuple(self.node_types)

    def _links(self) -> list[Link]:
        return [(a, b) for a, b in self.edge_types]

    def _groups(self) -> Sequence[str]:
        return [*self._types(), *map("-".join, self._links())]

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        """X as pairs (nodes, edges) or triples with edge features, all dicts by type."""
        X = check_sequences(X, name, empty=True)
        for i, x in enumerate(X):
            fits = isinstance(x, (tuple, list)) and len(x) in (2, 3)
            if not fits or not all(isinstance(part, Mapping) for part in x):
                raise TypeError(
                    f"{name}[{i}] must be a pair of dicts (node features by type, edges by pair "
                    "of types) or a triple with edge features"
                )
            _check_keys(x[0], self._types(), f"{name}[{i}][0]", "node_types")
            for k, part in enumerate(x[1:], start=1):
                _check_keys(part, self._links(), f"{name}[{i}][{k}]", "edge_types")
            self._refuse_repeated(x[1], f"{name}[{i}]")
            odd = set(x[2]) - self._observed() if known and len(x) == 3 else ()
            if odd:
                raise ValueError(
                    f"{name}[{i}][2] has edge features {min(odd)!r}, but the model was fitted "
                    "without them"
                )
        return X

    def _check_alike(self, X: Sequence[Any], reader: Reader) -> None:
        read = {own.name for own in reader.templates if own.features is not None}
        for i, x in enumerate(X):
            for link in x[2] if len(x) == 3 else ():
                if "-".join(link) not in read:
                    raise ValueError(
                        f"X[{i}][2] has edge features {link!r}, unlike the graphs that were read "
                        "before; prepare all graphs together"
                    )

    def _observed(self) -> set[Link]:
        """The edge types that had features in training."""
        if self._seen_links is not None:
            return self._seen_links
        return {link for link in self._links() if self.reader_.input("-".join(link)) is not None}

    _glances: ClassVar[bool] = True
    _seen_links: set[Link] | None = field(default=None, init=False)  # while parts are read

    def _glance(self, X: Any, y: Any, sample_weight: object) -> set[Link]:
        """The edge types that have features in one part."""
        return {link for x in self._examples(X) if len(x) == 3 for link in x[2]}

    def _know(self, glances: Sequence[set[Link]]) -> None:
        self._seen_links = set().union(*glances)

    def _refuse_repeated(self, edges: Mapping[Link, Any], where: str) -> None:
        for link, listed in edges.items():
            try:
                ends = np.asarray(listed)
            except ValueError:  # lists of several lengths, refused where edges are read
                continue
            directed = link[0] != link[1] or self.tables in ("full", "antisymmetric")
            pairs = ends.ndim == 2 and ends.shape[1] == 2 and ends.dtype.kind in "iu"
            twice = repeated_edge(ends, directed=directed) if pairs else None
            if twice is not None:
                raise ValueError(
                    f"edges {twice[0]} and {twice[1]} of {where}[1][{link!r}] join the same nodes; "
                    "keep one of them, with the features of both"
                )

    def _flat(self, y: object, X: Sequence[Any], name: str = "y") -> Sequence[Any]:
        """Labels of all nodes, type after type."""
        given = check_sequences(y, name, empty=True)
        for i, (own, x) in enumerate(zip(given, X, strict=False)):
            for kind in self._types() if isinstance(own, Mapping) else ():
                n = length_of(x[0][kind]) if kind in x[0] else 0
                labels = own.get(kind, ())
                if hasattr(labels, "__len__") and len(labels) != n:
                    raise ValueError(
                        f"{name}[{i}][{kind!r}] must have {n} labels, one per node, got "
                        f"{len(labels)}"
                    )
        return super()._flat(y, X, name)

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        observed = {link for x in X if len(x) == 3 for link in x[2]}
        observed = self._observed() if keep else observed
        return Reader.like(self._templates_for(observed), X)

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        described = {own["name"]: own["features"] for own in facts["templates"]}
        observed = {link for link in self._links() if described.get("-".join(link))}
        return Reader.like(self._templates_for(observed), [])

    def _templates_for(self, observed: set[Link]) -> list[CliqueTemplate]:
        """Templates of nodes and edges; edges of these types have features."""
        intercept = bool(self.fit_intercept)
        nodes = [
            CliqueTemplate(kind, features=_Of(0, kind), fit_intercept=intercept, types=(kind,))
            for kind in self._types()
        ]
        edges = [
            CliqueTemplate(
                "-".join(link),
                _Of(1, link),
                _Of(2, link) if link in observed else None,
                tables=self.tables if link[0] == link[1] else "full",
                fit_intercept=intercept or link not in observed,
                types=link,
            )
            for link in self._links()
        ]
        return nodes + edges

    def _check_parameters(self) -> None:
        types = self.node_types
        listed = isinstance(types, (list, tuple)) and all(isinstance(own, str) for own in types)
        if not listed or not types:
            raise ValueError(f"node_types must be a list of names, got {types!r}")
        for k, link in enumerate(self.edge_types):
            pair = isinstance(link, (list, tuple)) and len(link) == 2
            if not pair or not all(own in types for own in link):
                raise ValueError(
                    f"edge_types[{k}] must be a pair of {', '.join(map(repr, types))}, got {link!r}"
                )
        groups = self._groups()
        if len(set(groups)) < len(groups):
            twice = next(name for name in groups if groups.count(name) > 1)
            raise ValueError(f"node_types and edge_types name {twice!r} twice; names must differ")
        check_choice("tables", self.tables, TABLES)
        super()._check_parameters()


@dataclass(frozen=True)
class _Of:
    """The nodes or edges of one type in an example; empty if the example has none."""

    part: int
    kind: str | Link

    def __call__(self, x: Sequence[Mapping[Any, Any]]) -> Any:
        return x[self.part].get(self.kind, ()) if self.part < len(x) else ()

    @property
    def called(self) -> str:
        """The name that users write."""
        return f"features of {self.kind!r}"


def _check_keys(given: Mapping[Any, Any], known: Sequence[Any], where: str, parameter: str) -> None:
    odd = [key for key in given if key not in known]
    if odd:
        raise ValueError(
            f"{where} has the unknown type {odd[0]!r}; {parameter} has "
            f"{', '.join(map(repr, known)) or 'none'}"
        )
