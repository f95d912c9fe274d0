"""GraphCRF: label the nodes of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import check_sequences
from chordal.estimators._crf import BaseCRF
from chordal.estimators._edge_tables import (
    ColumnTables,
    check_edge_tables,
    edge_groups,
    edge_templates,
)
from chordal.features import Beside, CliqueTemplate, Reader
from chordal.structures import repeated_edge

if TYPE_CHECKING:
    from chordal.estimators._training.stored_rows import StoredRows


@final
@dataclass(eq=False, repr=False, kw_only=True)
class GraphCRF(BaseCRF):
    """Conditional random field over the nodes of graphs, joined by edges.

    Node features have a weight per label. Edges have a weight for every pair of labels; each edge
    feature adds one per pair. The groups of weights are "nodes", "edges" and "vectors" (arrays
    inside nodes that are dicts, as in `ChainCRF`). With `column_tables` there are also groups such
    as "edges antisymmetric".

    Parameters
    ----------
    tables : {"symmetric", "full", "antisymmetric", "potts"}, default="symmetric"
        Form of the label-pair weights w[a, b] of an edge. "symmetric": w[a, b] = w[b, a], the
        direction of an edge does not matter. "full": the direction matters. "antisymmetric": w[a,
        b] = −w[b, a]. "potts": one weight for equal labels. List each edge once; where direction
        matters, once per direction.
    column_tables : dict {kind of tables: list of columns}, optional
        Edge-feature columns (of an array or a sparse matrix) with another form than `tables`. For
        example, a difference in height is antisymmetric, a distance symmetric. `tables` holds for
        the other columns and the intercept.
    fit_intercept : bool, default=True
        Whether labels and pairs of labels have constant weights besides those of features.

    Attributes
    ----------
    coef_ : array [n_classes, n_features], weights of nodes
    intercept_ : array [n_classes]
    pair_coef_ : array [n_edge_features, n_classes, n_classes]
    pair_intercept_ : array [n_classes, n_classes]

    Examples
    --------
    A ring of nodes with one noisy feature; each half has its own label:

    >>> nodes = np.array([[1.0], [1.2], [0.1], [-0.9], [-1.1], [-0.1]])
    >>> ring = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
    >>> crf = GraphCRF(l2=0.1).fit([(nodes, ring)], [["a", "a", "a", "b", "b", "b"]])
    >>> crf.predict([(nodes, ring)])
    [['a', 'a', 'a', 'b', 'b', 'b']]
    >>> crf.inference_.name, crf.fit_report_.exact
    ('junction_tree', True)

    The first edge feature is how near the nodes are, the second which node is higher:

    >>> nodes, edges = np.zeros((3, 1)), np.array([(0, 1), (2, 1)])
    >>> seen = np.array([[1.0, 0.8], [1.0, -0.9]])  # 0 above 1, 2 below 1
    >>> crf = GraphCRF(tables="full", column_tables={"symmetric": [0], "antisymmetric": [1]})
    >>> crf = crf.fit([(nodes, edges, seen)], [["sky", "tree", "road"]])
    >>> crf.classes_.tolist(), crf.pair_coef_[1].round(2)
    (['road', 'sky', 'tree'], array([[ 0.  , -0.03, -0.62],
           [ 0.03,  0.  ,  0.56],
           [ 0.62, -0.56,  0.  ]]))
    """

    tables: str = "symmetric"
    column_tables: ColumnTables | None = None
    fit_intercept: bool = True
    pairs: str = "seen"
    min_freq: int = 0
    ignore_label: object = None

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Sequence[Any]:
        """X as pairs (nodes, edges) or triples with edge features; all examples of one form."""
        X = check_sequences(X, name, empty=True)
        for i, x in enumerate(X):
            if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
                raise TypeError(
                    f"{name}[{i}] must be a pair (node features, edges) or a triple with edge "
                    f"features; got {type(x).__name__}"
                    + (f" of length {len(x)}" if isinstance(x, (tuple, list)) else "")
                )
            if len(x) != len(X[0]):
                raise ValueError(
                    f"{name}[{i}] and {name}[0] must either both have edge features or both not"
                )
            self._refuse_repeated(x[1], f"{name}[{i}]")
        if known:
            self._check_alike(X, self.reader_, f"{name} has", "the model was fitted to")
        return X

    def _check_alike(
        self, X: Sequence[Any], reader: Reader, has: str = "X has", read: str = "were read before"
    ) -> None:
        if len(X) and (len(X[0]) == 3) != (reader.inputs[1] is not None):
            none = "" if len(X[0]) == 3 else "no "
            raise ValueError(f"{has} {none}edge features, unlike the graphs that {read}")

    def _refuse_repeated(self, edges: object, where: str) -> None:
        """Raise an error for an edge that is listed twice: it would count twice."""
        try:
            ends = np.asarray(edges)
        except ValueError:  # lists of several lengths
            ends = np.zeros(0)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            return  # refused where edges are read
        twice = repeated_edge(ends, directed=self._directed())
        if twice is not None:
            a, b = ends[twice[1]]
            raise ValueError(
                f"edges {twice[0]} and {twice[1]} of {where} both join nodes {a} and {b}; keep one "
                "of them, with the features of both"
            )

    def _directed(self) -> bool:
        """Whether the direction of an edge matters."""
        return bool({"full", "antisymmetric"} & {self.tables, *(self.column_tables or ())})

    def _groups(self) -> Sequence[str]:
        return ("nodes", *edge_groups("edges", self.column_tables), "vectors")

    def _new_reader(self, X: Sequence[Any], keep: bool = False) -> Reader:
        return Reader.like(self._templates_for(len(X[0]) == 3), X)

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        return Reader.like(self._templates_for(bool(facts["templates"][1]["features"])), [])

    def _templates_for(self, edge_features: bool) -> list[CliqueTemplate]:
        """Templates of nodes and edges; edges have features or not."""
        intercept, observed = bool(self.fit_intercept), itemgetter(2) if edge_features else None
        if self.column_tables and not edge_features:
            raise ValueError(
                "column_tables names columns of edge features, but X has no edge features: give "
                "triples (nodes, edges, edge features)"
            )
        edges = CliqueTemplate(
            "edges",
            itemgetter(1),
            observed,
            tables=self.tables,
            fit_intercept=intercept or observed is None,
        )
        return [
            CliqueTemplate("nodes", features=itemgetter(0), fit_intercept=intercept),
            *edge_templates(edges, self.column_tables),
            CliqueTemplate("vectors", features=Beside("nodes"), fit_intercept=False),
        ]

    def _restored(self, stored: StoredRows) -> list[Any]:
        if self.column_tables:
            raise UnsupportedError(
                "a data set keeps the edge features of each of column_tables apart: give X and y"
            )
        given = [stored.observed("nodes", "vectors"), stored.scopes("edges")]
        if stored.has_rows("edges"):
            given.append(stored.rows("edges"))
        return list(zip(*given, strict=True))

    def _check_parameters(self) -> None:
        check_edge_tables(self.tables, self.column_tables)
        super()._check_parameters()

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of nodes [n_classes, n_features]."""
        return np.ascontiguousarray(self._table("nodes", "features").T)

    @property
    def intercept_(self) -> NDArray[Any]:
        """Weights of labels [n_classes]; zeros without `fit_intercept`."""
        return self._table("nodes")

    @property
    def pair_coef_(self) -> NDArray[Any]:
        """Weights of edge features [n_edge_features, n_classes, n_classes]."""
        rest = self._table("edges", "features")
        if not self.column_tables:
            return rest
        named = {kind: [int(c) for c in columns] for kind, columns in self.column_tables.items()}
        n = len(rest) + sum(map(len, named.values()))
        every = np.empty((n, *rest.shape[1:]))
        others = np.ones(n, dtype=bool)
        for kind, columns in named.items():
            every[columns], others[columns] = self._table(f"edges {kind}", "features"), False
        every[others] = rest
        return every

    @property
    def pair_intercept_(self) -> NDArray[Any]:
        """Weights of label pairs [n_classes, n_classes]."""
        return self._table("edges")
