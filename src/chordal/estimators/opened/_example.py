"""One example as a fitted model sees it: read once, then asked about its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import is_sparse
from chordal.estimators._asking import best, method_for, read
from chordal.estimators._crf import BaseCRF
from chordal.estimators._still import still
from chordal.estimators._wrapped import Wrapped
from chordal.estimators.chain_crf import ChainCRF
from chordal.estimators.opened._places import Places
from chordal.features import Batch, SharedInput
from chordal.features.splitting import entries_of, without_columns
from chordal.inference import Inference
from chordal.potentials import Floats, Potentials
from chordal.text import Columns, Items

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Term:
    """What one observation, or none, adds to the scores of a variable or of a clique.

    template : str, the name of the clique template
    name : str or None, of the column; None for the weights of labels as such
    column : int, −1 without a name
    value : float or None
    scores : float64, an axis of labels for each variable of the clique
    """

    template: str
    name: str | None
    column: int
    value: float | None
    scores: Floats


class OpenExample:
    """One example under a fitted model. Labels are numbered as the model numbers them.

    Parameters
    ----------
    model : BaseCRF
    X : the example in a list, as the model has checked it
    batch : Batch of this one example
    holder : the estimator that holds the model, if there is one
    """

    def __init__(self, model: BaseCRF, X: Any, batch: Batch, holder: Wrapped | None = None) -> None:
        self.model, self.X, self.batch, self.holder = model, X, batch, holder
        whole = model if holder is None else holder
        # Columns have no single example to show, and are chains.
        x = None if isinstance(X, (Columns, Items)) else X[0]
        self.places = Places.of(model, batch, x, whole.classifies)
        self._layout = model.layout_
        self._expanded = self._layout.expanded(model.weights_)

    @property
    def n_variables(self) -> int:
        """How many variables the example has."""
        return int(self.batch.sizes[0])

    @property
    def is_chain(self) -> bool:
        """Whether each variable is linked to the next one alone."""
        return self.batch.is_chain

    @cached_property
    def potentials(self) -> Potentials:
        """All scores, with a separate table for every clique."""
        shard = self._layout.compile(self.batch, 0, 1, once=True)
        return self._layout.potentials(shard, self._expanded).untied()

    @cached_property
    def predicted(self) -> Codes:
        """The label of each variable that `predict` gives, as a number."""
        _, _, joint = best(self.model, self.X, None, batch=self.batch)
        found = self.model.labels_.within(joint, self.batch.kinds)
        assert isinstance(found, np.ndarray)
        return found

    def method(self, question: str) -> Inference:
        """What answers a question about this example."""
        return method_for(self.model, question, self.potentials)

    def labels_at(self, variable: int) -> list[Any]:
        """The labels that a variable may have, by their numbers."""
        labels = self.model.labels_
        if self.batch.kinds is None:
            return list(labels.labels)
        kind = labels.types[self.batch.kinds[variable]]
        return [label for own, label in labels.labels if own == kind]

    def scores_at(self, variable: int) -> Floats:
        """The scores of a variable's labels before any link counts."""
        first, last = self.potentials.structure.state_offsets[variable : variable + 2]
        return self.potentials.unary[first:last]

    def cliques_at(self, variable: int) -> list[int]:
        """The cliques that hold a variable, by their numbers in the structure."""
        offsets, cliques = self.potentials.structure.cliques_of_variable
        return [int(c) for c in cliques[offsets[variable] : offsets[variable + 1]]]

    def terms(self, variable: int) -> list[Term]:
        """What adds up to the scores of a variable's labels."""
        return [term for k, row in self._rows_at(variable) for term in self._terms(k, row)]

    def _rows_at(self, variable: int) -> Iterator[tuple[int, int]]:
        """Templates of single variables, and their cliques that are this variable."""
        for k, (own, cliques) in enumerate(
            zip(self._layout.templates, self.batch.cliques, strict=True)
        ):
            if own.order == 1:
                scopes = cliques.listed(self.batch.sizes)[:, 0]
                yield from ((k, int(row)) for row in np.flatnonzero(scopes == variable))

    def link_terms(self, clique: int) -> list[Term]:
        """What adds up to the table of a clique."""
        group, number = self._members[clique].tolist()
        return [term for k in self.batch.groups[group] for term in self._terms(k, number)]

    @cached_property
    def _members(self) -> Ints:
        """Of each clique of the structure, its group and its number there."""
        groups = self.batch.groups
        sizes = [int(self.batch.cliques[group[0]].counts[0]) for group in groups]
        _, places = self.batch.structure(0, 1, self._layout.counts)
        where = [np.arange(n) for n in sizes] if places is None else places
        out = np.zeros((sum(sizes), 2), dtype=np.int64)
        for g, at in enumerate(where):
            out[at, 0], out[at, 1] = g, np.arange(len(at))
        return out

    def _terms(self, k: int, row: int) -> Iterator[Term]:
        """What the observations of a clique of a template give, and its labels as such."""
        own, (expanded, table) = self._layout.templates[k], self._expanded[k]
        rows, shape = self.batch.cliques[k].rows, own.tables.shape
        if own.rows is not None and rows is not None:
            entries = entries_of(own, expanded, rows, row)
            plain = own.name in self.model.reader_.numbering
            for column, value, scores in zip(
                entries.columns.tolist(), entries.values.tolist(), entries.scores, strict=True
            ):
                cells = scores.reshape(shape)
                if plain:
                    yield Term(own.name, None, -1, None, cells)
                else:
                    yield Term(own.name, self._name(k, column), column, value, cells)
        if table is not None:
            yield Term(own.name, None, -1, None, table.reshape(shape))

    def _name(self, k: int, column: int) -> str:
        """What users call a column of a template."""
        names = getattr(self.model, "feature_names_in_", None)
        if self.holder is not None and self.holder.on_scores:
            names = [f"score of {label!r}" for label in self.holder.classes_.tolist()]
        if names is not None and k == 0:
            return str(names[column])
        source = self.model.reader_.inputs[k]
        source = source.source if isinstance(source, SharedInput) else source
        assert source is not None
        return source.name(column)

    def meaning(self, name: str) -> str:
        """What an attribute of a feature template is about; empty for others."""
        template = self.model.columns_template() if isinstance(self.model, ChainCRF) else None
        return "" if template is None else template.explain(name)

    def without(self, variable: int, terms: Iterable[Term]) -> OpenExample:
        """The same example, in which a variable does not have these observations."""
        gone: dict[str, list[int]] = {}
        for term in terms:
            gone.setdefault(term.template, []).append(term.column)
        return OpenExample(self.model, self.X, self._batch_without(variable, gone), self.holder)

    def _batch_without(self, variable: int, gone: Mapping[str, list[int]]) -> Batch:
        rows = [own.rows for own in self.batch.cliques]
        for k, row in self._rows_at(variable):
            columns, held = gone.get(self._layout.templates[k].name), rows[k]
            if columns and held is not None:
                rows[k] = without_columns(held, row, columns)
        return self.batch.with_rows(rows)


def opened(estimator: object, x: object) -> OpenExample:
    """One example under a fitted estimator.

    Parameters
    ----------
    estimator : a fitted estimator; of one that chooses among others, the one that was chosen
    x : one example: what `predict` takes a list of. For classifiers, one row.
    """
    for name in ("best_estimator_", "estimator_"):
        estimator = getattr(estimator, name, estimator)
    holder = estimator if isinstance(estimator, Wrapped) else None
    if isinstance(estimator, Wrapped):
        estimator._check_fitted()
        model, X = estimator.crf_, estimator._observed(_listed(estimator, x))
    elif isinstance(estimator, BaseCRF):
        estimator._check_fitted()
        model, X = estimator, _listed(estimator, x)
    else:
        raise TypeError(
            f"estimator must be one of chordal's, such as ChainCRF, got {type(estimator).__name__}"
        )
    model = still(model)
    X, batch = read(model, X)
    if len(batch.sizes) != 1:
        raise ValueError(f"x must be one example, got {len(batch.sizes)}")
    if batch.exclusive:
        raise UnsupportedError(
            "the labels of a matching exclude each other: there are no log-odds to explain, and no "
            "labels to show one by one. `predict`, `potentials` and `template_weights` work"
        )
    if not batch.sizes[0]:
        raise ValueError("x is empty: give an example with at least one variable")
    return OpenExample(model, X, batch, holder)


def _listed(estimator: Wrapped | BaseCRF, x: Any) -> Any:
    """One example as a list of examples, or a row as a matrix."""
    if isinstance(x, (Columns, Items)):
        return x
    if not estimator.classifies:
        return [x]
    if hasattr(x, "to_frame"):  # a row of a data frame
        return x.to_frame().T.infer_objects()
    if is_sparse(x) or np.ndim(x) == 2 or hasattr(x, "columns"):
        return x
    return np.asarray(x)[None]
