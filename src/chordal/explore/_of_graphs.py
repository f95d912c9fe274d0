"""Graphs: nodes of one type or of several, joined by cliques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal._errors import UnsupportedError
from chordal._validate import is_list, numbers
from chordal.estimators import TemplateCRF
from chordal.explore._labels import Coder, Ints, LabelSets
from chordal.explore._links import joined_links, links_of
from chordal.explore._shapes import Shapes, named, token_of
from chordal.explore._subject import Floats, Subject, listed, with_labellings
from chordal.explore._unary import unary_attributes
from chordal.explore._weights import Weights

BLOCK = 200  # graphs whose potentials are made at a time


@final
class Graphs(Subject):
    """`GraphCRF`, `TypedGraphCRF` and `TemplateCRF`, and what holds one."""

    whole: ClassVar[bool] = True

    @property
    def types(self) -> Sequence[str]:
        """The types of nodes; empty if there is one."""
        return tuple(self.crf.labels_.types)

    def label_sets(self) -> LabelSets:
        """The labels of each type of nodes."""
        if not self.types:
            return super().label_sets()
        classes = self.crf.labels_.classes
        return LabelSets([classes[kind].tolist() for kind in self.types], self.types)

    def places(self, coder: Coder, labels: Any) -> Ints:
        """The places of a labelling of one graph, type after type."""
        if not self.types:
            return super().places(coder, labels)
        found = [coder.predicted(listed(labels.get(t, ())), k) for k, t in enumerate(self.types)]
        return np.concatenate(found)

    def marginals(self, X: Any) -> list[Floats]:
        """P(label) of each node; nodes with fewer labels have zeros behind them."""
        if not self.types:
            return super().marginals(X)
        width = int(self.sets.counts.max())
        return [
            np.concatenate([_padded(own[kind], width) for kind in self.types if kind in own])
            for own in self.model.predict_marginals(X)
        ]

    def gold(self, y: Any) -> Sequence[Sequence[Any]]:
        """The true labels of each graph, type after type."""
        if not self.types:
            return super().gold(y)
        if len(y) != self.n:
            raise ValueError(f"y must have one entry per example ({self.n}), got {len(y)}")
        for i, own in enumerate(y):
            if not isinstance(own, Mapping):
                raise TypeError(
                    f"y[{i}] must be a dict from type to labels, got {type(own).__name__}"
                )
        return [[label for t in self.types for label in listed(own.get(t, ()))] for own in y]

    def ranked(self, coder: Coder, X: Any, k: int) -> list[list[tuple[Ints, float]]]:
        """The best labellings; none of graphs for which no exact method gives them."""
        try:
            return with_labellings(self, coder, X, k)
        except UnsupportedError:
            return [[] for _ in X]

    def shapes(self, sizes: Ints) -> Shapes:
        """Names of nodes, and where they are drawn if that is given."""
        tokens, facts = self.looks.tokens, {"types": list(self.types), "numbered": False}
        if tokens is None:
            pairs = zip(self.X, sizes.tolist(), strict=True)
            found = [self._names(x, n) for x, n in pairs]
            tokens, facts["numbered"] = [own for own, _ in found], not any(own for _, own in found)
        elif self.types:
            tokens = [self._flat(own) for own in tokens]
        names, numbers = named(tokens, sizes)
        where = self.looks.positions
        positions = None if where is None else self._positions(where, sizes)
        return Shapes("graph", names, numbers, facts=facts, positions=positions)

    def _names(self, x: Any, n: int) -> tuple[list[str], bool]:
        """What the attributes of nodes call them, else their numbers; and whether any has a name.

        Nodes of numbers have none.
        """
        nodes = x if isinstance(self.crf, TemplateCRF) else x[0]
        if self.types and isinstance(nodes, Mapping):
            parts = [(kind, nodes[kind]) for kind in self.types if kind in nodes]
        else:
            parts = [("node", nodes)]
        words = [
            (f"{kind} {k}", row) for kind, rows in parts for k, row in enumerate(_listed(rows))
        ]
        if len(words) != n:
            return [f"node {k}" for k in range(n)], False
        found = [(token_of(row) if _has_words(row) else "") or word for word, row in words]
        return found, any(_has_words(row) for _, row in words)

    def _flat(self, own: Any) -> list[Any]:
        """What is given for each node, type after type."""
        parts = [own.get(kind, ()) for kind in self.types] if isinstance(own, Mapping) else [own]
        return [entry for part in parts for entry in part]

    def _positions(self, given: Sequence[Any], sizes: Ints) -> Floats:
        """The positions of all nodes, checked."""
        if not is_list(given) or len(given) != self.n:
            raise ValueError(f"positions must have one entry per graph ({self.n})")
        found = []
        for i, (own, n) in enumerate(zip(given, sizes.tolist(), strict=True)):
            if not is_list(own) and not isinstance(own, Mapping):
                raise TypeError(f"positions[{i}] must be a list of places, got {own!r:.60}")
            array = numbers(self._flat(own), f"positions[{i}]")
            array = array.reshape(len(array), -1) if array.size == 0 and n == 0 else array
            if array.shape != (n, 2) or not np.isfinite(array).all():
                raise ValueError(
                    f"positions[{i}] must be finite numbers [{n}, 2], x and y of each node; got "
                    f"shape {array.shape}"
                )
            found.append(array)
        return np.concatenate(found)

    def weights(self, local: Ints) -> Weights:
        """Attributes of nodes, and what their neighbours add."""
        scores, links, at = [], [], 0
        for begin in range(0, self.n, BLOCK):
            found = self.model.potentials(self.X[begin : begin + BLOCK])
            end = at + found.structure.n_variables
            scores.append(found.unary)
            links.append(links_of(found, local[at:end]))
            at = end
        own = self.crf is self.model
        batch = self.crf.reader_.read(self.X, grow=False) if own else None
        tables, axes = self._tables()
        return Weights(
            None if batch is None else unary_attributes(self.crf, batch, self.sets),
            scores=np.concatenate(scores),
            links=joined_links(links),
            tables=tables,
            axes=axes,
        )

    def _tables(self) -> tuple[dict[str, Floats], dict[str, tuple[list[str], list[str]]]]:
        """Weights of labels and of pairs of labels that depend on no observation."""
        tables, axes = {}, {}
        for template in self.crf.reader_.templates:
            found = self.crf.template_weights(template.name).get("intercept")
            if found is None or np.ndim(found) > 2 or not np.any(found):
                continue
            kinds = template.types if self.types else [""] * np.ndim(found)
            names = [self._labels(kind) for kind in kinds]
            tables[template.name] = np.asarray(found)
            axes[template.name] = (names[0] if len(names) == 2 else [], names[-1])
        return tables, axes

    def _labels(self, kind: str) -> list[str]:
        k = self.sets.titles.index(kind) if kind else 0
        return [str(label) for label in self.sets.values[k]]


def _padded(table: Any, width: int) -> Floats:
    found = np.asarray(table, dtype=np.float64)
    return np.pad(found, ((0, 0), (0, width - found.shape[1])))


def _listed(rows: Any) -> Sequence[Any]:
    """The rows of nodes; of arrays, only how many."""
    if isinstance(rows, (list, tuple)):
        return rows
    return [None] * (rows.shape[0] if hasattr(rows, "shape") else 0)


def _has_words(row: Any) -> bool:
    if isinstance(row, (str, Mapping)):
        return True
    return isinstance(row, (list, tuple, set, frozenset)) and any(isinstance(v, str) for v in row)
