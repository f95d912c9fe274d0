"""How a `NeuralCRF` keeps its examples in prepared data sets."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from chordal.estimators import BaseCRF, Given, GraphCRF, GridCRF, Keeping, RowForm
from chordal.torch._forms import Form, GraphForm, ImageForm, form_for
from chordal.torch._inputs import Glance, Inputs


def keeper_of(crf: BaseCRF) -> BaseCRF:
    """A CRF that reads the features of examples, with what links variables."""
    settings: dict[str, Any] = {"ignore_label": crf.ignore_label}
    if isinstance(crf, GridCRF):
        settings["neighbours"] = crf.neighbours
    if isinstance(crf, GraphCRF):
        settings["tables"] = crf.tables
    return type(crf)(**settings)


def glance_of(crf: BaseCRF, X: Any) -> Glance | None:
    """What the features of variables are like; None if there are no variables."""
    form = form_for(crf)
    return form.glance(form.examples(crf, X))


def keeping_of(crf: BaseCRF, X: Any) -> Keeping:
    """How examples such as these become those that this CRF reads."""
    form, glance = form_for(crf), glance_of(crf, X)
    rows = _row_form(form, glance)
    inputs = Inputs.from_glance(() if glance is None else glance, 1)

    def kept(X: Any, y: Any) -> tuple[Any, Any]:
        own = form.examples(crf, X)
        form(crf, inputs).seen(own)  # checked as in `fit`
        return _stored(form, own, rows, inputs), y

    return Keeping(kept, rows)


def _row_form(form: type[Form], glance: Glance | None) -> RowForm:
    """What a row means: the numbers themselves, an array of more axes, or a token."""
    if glance is None or issubclass(form, ImageForm):
        return RowForm()
    if not isinstance(glance, tuple):
        return RowForm(symbols=True)
    return RowForm(shape=glance) if len(glance) > 1 else RowForm()


def _stored(form: type[Form], X: Sequence[Any], rows: RowForm, inputs: Inputs) -> list[Any]:
    if issubclass(form, ImageForm):
        return list(X)
    if issubclass(form, GraphForm):
        nodes = [_rows(x[0], rows, inputs, f"the nodes of X[{i}]") for i, x in enumerate(X)]
        return [(own, *x[1:]) for own, x in zip(nodes, X, strict=True)]
    return [_rows(x, rows, inputs, f"X[{i}]") for i, x in enumerate(X)]


def _rows(x: Any, rows: RowForm, inputs: Inputs, name: str) -> Any:
    if rows.symbols:
        return rows.stored(x, name)
    if not len(x):
        return np.zeros((0, prod(inputs.shape)))
    return rows.stored(np.asarray(x), name)


def restored(crf: BaseCRF, part: Given, rows: RowForm) -> Given:
    """Examples of a data set; an error if a network cannot read them."""
    form = form_for(crf)
    if issubclass(form, ImageForm):
        if rows != RowForm():
            raise ValueError(f"its rows are {rows.described}, not features of pixels")
        return part
    nodes = [x[0] for x in part.X] if issubclass(form, GraphForm) else part.X
    first = next((own for own in nodes if len(own)), None)
    if not rows.symbols and isinstance(first, list):
        raise ValueError("its rows are attributes; a network reads tokens or numbers")
    return part
