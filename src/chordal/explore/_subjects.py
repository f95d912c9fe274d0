"""Which kind of page shows a model."""

from __future__ import annotations

from os import PathLike
from typing import Any

from chordal._errors import UnsupportedError, not_fitted
from chordal._validate import check_sequences
from chordal.estimators import (
    BaseCRF,
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MultiLabelCRF,
    NaiveBayes,
    TemplateCRF,
    TypedGraphCRF,
    Wrapped,
)
from chordal.explore._of_graphs import Graphs
from chordal.explore._of_grids import Grids
from chordal.explore._of_label_rows import RowsOfLabels
from chordal.explore._of_rows import RowsOfTable
from chordal.explore._of_sequences import Sequences
from chordal.explore._subject import Looks, Subject
from chordal.text import Columns, Items

#: What shows a model, by its class or that of the CRF that it holds; the first that fits.
KINDS: tuple[tuple[tuple[type[Any], ...], type[Subject]], ...] = (
    ((CRFClassifier, NaiveBayes), RowsOfTable),
    ((MultiLabelCRF,), RowsOfLabels),
    ((ChainCRF,), Sequences),
    ((GridCRF,), Grids),
    ((GraphCRF, TypedGraphCRF, TemplateCRF), Graphs),
)


def subject_of(model: Any, X: Any, looks: Looks) -> Subject:
    """A model with its examples; refuses what no page can show."""
    for name in ("best_estimator_", "estimator_"):  # of searches, the model that they chose
        model = getattr(model, name, model)
    chosen = kind_of(model)
    if isinstance(X, (str, PathLike, Items)) or hasattr(X, "n_parts"):
        raise UnsupportedError(
            f"explore shows examples in memory, as lists, arrays or Columns; got {type(X).__name__}"
        )
    if looks.positions is not None and chosen is not Graphs:
        raise ValueError(f"positions are of nodes of graphs, and this is a {type(model).__name__}")
    if looks.image_shape is not None and chosen in (Graphs, Grids):
        raise ValueError(
            f"image_shape is of rows of numbers, and a {type(model).__name__} has none"
        )
    if chosen in (Sequences, Grids, Graphs) and not isinstance(X, (list, Columns)):
        X = check_sequences(X, empty=True)
    subject = chosen(model, X, looks)
    if subject.n == 0:
        raise ValueError("there is nothing to explore: X has no examples")
    return subject


def kind_of(model: Any) -> type[Subject]:
    """What shows a model; an error if nothing does, or if the model is not fitted."""
    inner = getattr(model, "crf_", model)
    if isinstance(inner, Wrapped):  # it holds no CRF yet
        raise not_fitted(model)
    for classes, chosen in KINDS:
        if isinstance(model, classes) or isinstance(inner, classes):
            if isinstance(inner, BaseCRF) and not hasattr(inner, "weights_"):
                raise not_fitted(model)
            return chosen
    raise UnsupportedError(
        "explore shows models that predict labels of sequences, grids, graphs and rows (such as "
        f"ChainCRF, GridCRF, GraphCRF, CRFClassifier); got {type(model).__name__}"
    )
