"""From examples to cliques and rows of observations, by the functions of templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._chain_model import length_of
from chordal.estimators.clique_template import CliqueTemplate
from chordal.features import CliqueBatch, Cliques, Input, Rows, input_for
from chordal.structures import check_scopes, offsets_of

Ints = NDArray[np.int64]


def check_templates(templates: Any) -> list[CliqueTemplate]:
    """A list of templates with names that differ, one of which counts the variables."""
    if not isinstance(templates, (list, tuple)) or not templates:
        raise TypeError(f"templates must be a list of CliqueTemplate, got {templates!r}")
    for template in templates:
        if not isinstance(template, CliqueTemplate):
            raise TypeError(f"templates must be of class CliqueTemplate, got {template!r}")
    names = [template.name for template in templates]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two templates have the name {twice!r}; names must differ")
    if not any(t.cliques is None and t.features is not None for t in templates):
        raise ValueError(
            "one of the templates must have features and no cliques: its rows tell how many "
            "variables an example has"
        )
    return list(templates)


def new_inputs(templates: Sequence[CliqueTemplate], X: Sequence[Any]) -> list[Input | None]:
    """What reads the observations of each template, by those of the first example with some."""
    inputs: list[Input | None] = []
    for template in templates:
        if template.features is None:
            inputs.append(None)
            continue
        first = template.features(X[0])
        for x in X[1:]:
            if length_of(first):
                break
            first = template.features(x)
        with _named(template, range(len(X))):
            inputs.append(input_for(first))
    return inputs


def read_batch(
    templates: Sequence[CliqueTemplate],
    inputs: Sequence[Input | None],
    X: Sequence[Any],
    grow: bool,
) -> CliqueBatch:
    """Cliques and observations of all examples; refuses what does not fit together."""
    rows = [
        None if source is None else _rows(template, source, X, grow)
        for template, source in zip(templates, inputs, strict=True)
    ]
    sizes = _sizes(templates, rows)
    found = [
        _cliques(template, own, X, sizes) for template, own in zip(templates, rows, strict=True)
    ]
    return CliqueBatch(sizes, found)


def _rows(template: CliqueTemplate, source: Input, X: Sequence[Any], grow: bool) -> Rows:
    """The observations of a template; examples may have none."""
    assert template.features is not None
    observed = [template.features(x) for x in X]
    where = [i for i, own in enumerate(observed) if length_of(own)]
    with _named(template, where):
        rows = source.read([observed[i] for i in where], grow)
    counts = np.zeros(len(X), dtype=np.int64)
    counts[where] = rows.lengths
    return Rows(counts, rows.data)


def _sizes(templates: Sequence[CliqueTemplate], rows: Sequence[Rows | None]) -> Ints:
    """How many variables each example has."""
    sizes, name = None, ""
    for template, own in zip(templates, rows, strict=True):
        if template.cliques is not None or own is None:
            continue
        if sizes is None:
            sizes, name = own.lengths, template.name
        elif (wrong := np.flatnonzero(sizes != own.lengths)).size:
            i = int(wrong[0])
            raise ValueError(
                f"templates {name!r} and {template.name!r} must have a row for every variable, "
                f"and have {sizes[i]} and {own.lengths[i]} for X[{i}]"
            )
    if sizes is None:
        raise ValueError("no template tells how many variables an example has")
    return np.asarray(sizes)


def _cliques(template: CliqueTemplate, rows: Rows | None, X: Sequence[Any], sizes: Ints) -> Cliques:
    if template.cliques is None:
        scopes = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
        return Cliques(scopes[:, None], sizes, rows, whole=True)
    found = [_scopes(template, template.cliques(x), i) for i, x in enumerate(X)]
    counts = np.array([len(own) for own in found], dtype=np.int64)
    scopes = np.concatenate(found)
    offsets = template.size * np.arange(len(scopes) + 1)
    try:
        check_scopes(scopes.ravel(), offsets, offsets_of(counts), sizes)
    except ValueError as error:
        raise ValueError(f"template {template.name!r}: {error}") from None
    if rows is not None and (wrong := np.flatnonzero(rows.lengths != counts)).size:
        i = int(wrong[0])
        raise ValueError(
            f"template {template.name!r} must have a row of features for every clique, and has "
            f"{rows.lengths[i]} rows for {counts[i]} cliques of X[{i}]"
        )
    return Cliques(scopes, counts, rows)


def _scopes(template: CliqueTemplate, cliques: Any, i: int) -> Ints:
    try:
        array = np.asarray(cliques)
    except ValueError:  # tuples of several lengths
        array = np.array(list(cliques), dtype=object)
    if array.size == 0:
        return np.zeros((0, template.size), dtype=np.int64)
    if template.size == 1 and array.ndim == 1:
        array = array[:, None]
    if (
        array.ndim != 2
        or array.shape[1] != template.size
        or not np.issubdtype(array.dtype, np.integer)
    ):
        other = array.ndim == 2 and array.shape[1] != template.size
        hint = f"; CliqueTemplate(…, order={array.shape[1]}) has such cliques" if other else ""
        raise ValueError(
            f"cliques of template {template.name!r} for X[{i}] must be whole numbers of shape "
            f"[n, {template.size}], got {array.dtype} of shape {array.shape}{hint}"
        )
    return array.astype(np.int64)


@contextmanager
def _named(template: CliqueTemplate, where: Sequence[int]) -> Iterator[None]:
    """Errors of reading rows, in terms of the template and of the examples as users count them."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = re.sub(r"\bX\[(\d+)\]", lambda m: f"X[{where[int(m[1])]}]", str(error))
        text = text.replace("each sequence", "they")
        raise type(error)(f"features of template {template.name!r}: {text}") from None
