"""`page`: the whole page, from a model and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import chordal
from chordal._validate import check_number, is_list
from chordal.explore._answers import ask
from chordal.explore._blocks import block, plain
from chordal.explore._joining import joined
from chordal.explore._packing import (
    COST,
    LEAST,
    chunks_of,
    details_block,
    explained_examples,
    list_block,
    rows_block,
    weights_block,
)
from chordal.explore._subject import Looks
from chordal.explore._subjects import subject_of
from chordal.explore._summary import figures
from chordal.progress import Progress

ATTRIBUTES = 4_000_000  # occurrences at most, some 10 MB


def page(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    title: str = "",
    tokens: Sequence[Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    positions: Sequence[Any] | None = None,
    k_best: int = 3,
    max_attributes: int = ATTRIBUTES,
    verbose: int = 0,
) -> str:
    """One HTML page to browse a data set under a model; it needs no server and no network.

    Parameters
    ----------
    model : a fitted estimator that predicts labels
        `ChainCRF`, `GridCRF`, `GraphCRF`, `TypedGraphCRF`, `TemplateCRF`, `CRFClassifier` or
        `MultiLabelCRF`; or what holds one, such as `NeuralCRF`, `HMM` or `NaiveBayes`.
    X : as `predict` takes it
    y : as `fit` takes it, optional
        The true labels; None where one is not known. Without y, the page shows predictions and
        how sure they are.
    title : str
        The heading of the page; the model's class by default.
    tokens : list, optional
        Names to show: a list of str per example, one for each position or node. For classifiers,
        one text per row, such as the document. By default the first column, or the attribute that
        is called "word", "w" or similar, or the first attribute; for nodes of numbers, "node 0".
    image_shape : (height, width), optional
        Rows of numbers are images of this size.
    positions : list of arrays [n_nodes, 2], optional
        Where the nodes of each graph are drawn: x to the right and y down, in any unit. Centres of
        superpixels, for example. By default the page arranges small graphs itself.
    k_best : int
        How many labellings of each sequence or graph the page has.
    max_attributes : int
        Occurrences of attributes that the page keeps for explanations, at most. Beyond it, examples
        with a lower loss (without y: a higher confidence) have no explanation.
    verbose : int
        1 shows progress in terminals and notebooks, 2 writes it as lines on standard error.

    Returns
    -------
    str
        HTML. Write it in UTF-8.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]], [["D", "N"], ["D", "N"]]
    >>> html = page(ChainCRF().fit(X, y), X, y, title="Two words")
    >>> html.startswith("<!doctype html>"), "<title>Two words</title>" in html
    (True, True)
    """
    _check_types(title, tokens)
    check_number("k_best", k_best, minimum=1, integer=True)
    check_number("max_attributes", max_attributes, minimum=0, integer=True)
    check_number("verbose", verbose, integer=True)
    looks = Looks(tokens, _shape(image_shape), positions, int(max_attributes))
    subject = subject_of(model, X, looks)
    model = subject.model
    shown = Progress("explore", subject.n, "examples", measure=True, verbose=verbose, ticks=True)
    with shown as progress:
        answers = ask(subject, y, int(k_best), progress)
    shapes = subject.shapes(answers.sizes)
    weights = subject.weights(answers.predicted - answers.first)
    explained = explained_examples(answers, weights, int(max_attributes))
    chunks = chunks_of(answers.sizes)
    title = title or f"{type(model).__name__} on {subject.n:,} example{'s' * (subject.n != 1)}"
    sets = answers.sets
    facts = {
        "title": title,
        "model": type(model).__name__,
        "version": chordal.__version__,
        "kind": shapes.kind,
        **shapes.facts,
        "labels": answers.labels,
        "n_classes": answers.n_classes,
        "sets": [
            [title, int(first), int(n)]
            for title, first, n in zip(sets.titles, sets.first, sets.counts, strict=True)
        ],
        "least": LEAST,
        "cost": COST,
        "chunks": [int(first) for first, _ in chunks],
        "explained": int(explained.sum()),
        "scores": weights.scores is not None,
        "tables": {
            name: [[plain(w, 9) for w in row] for row in np.atleast_2d(table)]
            for name, table in weights.tables.items()
        },
        "axes": weights.axes,
        "figures": figures(answers, subject.spans),
    }
    blocks = {"summary": block(facts, {}), "list": list_block(answers, shapes, explained)}
    blocks["weights"] = weights_block(weights)
    for k, (first, last) in enumerate(chunks):
        blocks[f"details-{k}"] = details_block(
            answers, shapes, weights.links, subject.whole, first, last
        )
        blocks[f"rows-{k}"] = rows_block(answers, weights, explained, first, last)
    return joined(title, blocks)


def _shape(image_shape: Any) -> tuple[int, int] | None:
    """The height and width of letters as plain integers, or an error."""
    if image_shape is None:
        return None
    if not is_list(image_shape) or len(shape := tuple(image_shape)) != 2:
        raise TypeError(f"image_shape must be (height, width), got {image_shape!r:.80}")
    for name, size in zip(("height", "width"), shape, strict=True):
        check_number(f"{name} of image_shape", size, minimum=1, integer=True)
    return int(shape[0]), int(shape[1])


def _check_types(title: Any, tokens: Any) -> None:
    if not isinstance(title, str):
        raise TypeError(f"title must be a str, got {type(title).__name__}")
    if tokens is not None and not is_list(tokens):
        raise TypeError(f"tokens must be a list with one entry per example, got {tokens!r:.80}")
