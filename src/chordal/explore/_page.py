"""`page`: the whole page, from a model and data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

import chordal
from chordal._errors import UnsupportedError
from chordal._validate import check_number
from chordal.estimators import ChainCRF, GridCRF
from chordal.explore._answers import UNOBSERVED, Answers, Ints, ask
from chordal.explore._blocks import block, plain, small
from chordal.explore._joining import joined
from chordal.explore._shapes import Shapes, shapes_of
from chordal.explore._summary import figures
from chordal.explore._weights import Attributes, Weights, weights_of
from chordal.features import Occurrences
from chordal.text import Columns, Items

CHUNK = 8000  # variables whose details are unpacked together
LEAST = 0.01  # probability that is kept
COST = 1000.0  # units per nat of −log P; the largest is 65.535 nats
ATTRIBUTES = 4_000_000  # occurrences at most, some 10 MB


def page(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    title: str = "",
    tokens: Sequence[Sequence[str]] | None = None,
    image_shape: tuple[int, int] | None = None,
    k_best: int = 3,
    max_attributes: int = ATTRIBUTES,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> str:
    """One HTML page to browse a data set under a model; it needs no server and no network.

    Parameters
    ----------
    model : ChainCRF or GridCRF, or what holds one, such as NeuralCRF or HMM
        A fitted model.
    X : as `predict` takes it
    y : list of labels, optional
        The true labels, in the shape that `fit` takes; None where one is not known. Without y,
        the page shows predictions and how sure they are.
    title : str
        The heading of the page; the model's class by default.
    tokens : list of lists of str, optional
        What stands for positions. By default the first column, or the attribute that is called
        "word", "w" or similar, or the first attribute.
    image_shape : (height, width), optional
        Rows of numbers are images of this size.
    k_best : int
        How many labellings of each sequence the page has.
    max_attributes : int
        Occurrences of attributes that the page keeps for explanations, at most. Beyond it, examples
        with a lower loss (without y: a higher confidence) have no explanation.
    watch : callable, optional
        Called with the number of examples done and of all, while the model is asked.

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
    check_number("k_best", k_best, minimum=1, integer=True)
    check_number("max_attributes", max_attributes, minimum=0, integer=True)
    grid = _is_grid(model)
    if isinstance(X, (str, PathLike, Items)) or hasattr(X, "n_parts"):
        raise UnsupportedError(
            f"explore shows examples in memory, as lists, arrays or Columns; got {type(X).__name__}"
        )
    if not isinstance(X, (list, Columns)):
        X = list(X)
    if len(X) == 0:
        raise ValueError("there is nothing to explore: X has no examples")
    answers = ask(model, X, y, int(k_best), not grid, watch)
    shapes = shapes_of(X, answers.sizes, tokens, image_shape, grid)
    weights = weights_of(model, X)
    explained = _explained(answers, weights, int(max_attributes))
    chunks = _chunks(answers.sizes)
    title = title or f"{type(model).__name__} on {len(X):,} examples"
    facts = {
        "title": title,
        "model": type(model).__name__,
        "version": chordal.__version__,
        "kind": shapes.kind,
        **shapes.facts,
        "labels": answers.labels,
        "n_classes": answers.n_classes,
        "least": LEAST,
        "cost": COST,
        "chunks": [int(first) for first, _ in chunks],
        "explained": int(explained.sum()),
        "scores": weights.scores is not None,
        "tables": {
            name: [[plain(w, 9) for w in row] for row in np.atleast_2d(table)]
            for name, table in weights.tables.items()
        },
        "figures": figures(answers, not grid),
    }
    blocks = {"summary": block(facts, {}), "list": _list(answers, shapes, explained)}
    blocks["weights"] = _weights_block(weights)
    for k, (first, last) in enumerate(chunks):
        blocks[f"details-{k}"] = _details(answers, shapes, first, last)
        blocks[f"rows-{k}"] = _rows(answers, weights, explained, first, last)
    return joined(title, blocks)


def _is_grid(model: Any) -> bool:
    """Whether a model is of grids; refuses what is neither of grids nor of sequences."""
    inner = getattr(model, "crf_", model)
    if not isinstance(inner, (ChainCRF, GridCRF)):
        raise UnsupportedError(
            "explore shows models of sequences and of grids (ChainCRF, GridCRF, and what holds "
            f"one, such as NeuralCRF), got {type(model).__name__}"
        )
    return isinstance(inner, GridCRF)


def _chunks(sizes: Ints) -> list[tuple[int, int]]:
    """First and last example, exclusive, of chunks of about CHUNK variables."""
    out, first, total = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if i > first and total + size > CHUNK:
            out.append((first, i))
            first, total = i, 0
        total += size
    return [*out, (first, len(sizes))]


def _explained(answers: Answers, weights: Weights, most: int) -> NDArray[np.bool_]:
    """The examples whose attributes the page keeps: those of the highest loss first."""
    counts = np.zeros(len(answers.sizes), dtype=np.int64)
    for own in (weights.node, weights.edge):
        if own is not None:
            steps = 1 if own is weights.edge else 0
            rows = np.concatenate([[0], np.cumsum(np.maximum(answers.sizes - steps, 0))])
            counts += np.diff(own.rows.offsets[rows])
    if weights.scores is not None:
        counts += answers.sizes * answers.n_classes
    elif weights.node is None:
        return np.zeros(len(counts), dtype=bool)
    by = -answers.confidence if answers.loss is None else np.nan_to_num(answers.loss, nan=-1.0)
    order = np.argsort(-by, kind="stable")
    out = np.zeros(len(counts), dtype=bool)
    out[order[np.cumsum(counts[order]) <= most]] = True
    return out


def _list(answers: Answers, shapes: Shapes, explained: NDArray[np.bool_]) -> str:
    """What the list of examples, its filters and its orders need of all of them."""
    columns: dict[str, NDArray[Any]] = {
        "sizes": small(answers.sizes),
        "predicted": small(answers.predicted),
        "confidence": answers.confidence.astype(np.float32),
        "margin": answers.margin.astype(np.float32),
        "explained": explained.astype(np.uint8),
    }
    if answers.gold is not None and answers.loss is not None:
        columns["gold"] = small(
            np.where(answers.gold == UNOBSERVED, len(answers.labels), answers.gold)
        )
        columns["loss"] = answers.loss.astype(np.float32)
    if shapes.kind == "text":
        columns["tokens"] = small(shapes.tokens)
    if shapes.kind == "grid":
        columns["heights"], columns["widths"] = small(shapes.sizes[:, 0]), small(shapes.sizes[:, 1])
    if shapes.kind == "letters":
        columns["pixels"] = shapes.pixels
    return block({"names": shapes.names}, columns)


def _details(answers: Answers, shapes: Shapes, first: int, last: int) -> str:
    """Marginals from LEAST on, with those of true and predicted labels; the best labellings."""
    begin, end = answers.offsets[first], answers.offsets[last]
    table, n = answers.marginals[begin:end], answers.n_classes
    kept = table >= LEAST
    kept[np.arange(end - begin), answers.predicted[begin:end]] = True
    if answers.gold is not None:
        gold = answers.gold[begin:end]
        seen = np.flatnonzero((gold >= 0) & (gold < n))
        kept[seen, gold[seen]] = True
    if shapes.kind == "grid":
        kept[:] = True
    row, label = np.nonzero(kept)
    with np.errstate(divide="ignore"):
        costs = np.rint(np.minimum(-np.log(table[row, label]) * COST, 65535.0))
    own = answers.paths[first:last]
    paths = [codes for of_example in own for codes, _ in of_example]
    columns = {
        "counts": small(np.bincount(row, minlength=end - begin)),
        "labels": small(label),
        "costs": np.maximum(costs, 0).astype(np.uint16),
        "k": small(np.array([len(of_example) for of_example in own], dtype=np.int64)),
        "paths": small(np.concatenate([np.zeros(0, dtype=np.int64), *paths])),
        "chances": np.array([c for of_example in own for _, c in of_example], dtype=np.float32),
    }
    if shapes.kind == "grid" and shapes.facts["channels"]:
        channels = shapes.facts["channels"]
        columns["pixels"] = shapes.pixels[begin * channels : end * channels]
    return block({}, columns)


def _weights_block(weights: Weights) -> str:
    """Names and weights of attributes."""
    facts: dict[str, Any] = {"meanings": weights.meanings}
    columns: dict[str, NDArray[Any]] = {}
    for part, own in _parts(weights):
        facts[part] = own.names
        columns[f"{part}_counts"] = small(np.diff(own.starts))
        columns[f"{part}_outputs"] = small(own.outputs)
        columns[f"{part}_weights"] = own.weights.astype(np.float32)
    return block(facts, columns)


def _rows(
    answers: Answers, weights: Weights, explained: NDArray[np.bool_], first: int, last: int
) -> str:
    """The attributes of the positions of explained examples, one example after another."""
    chosen = first + np.flatnonzero(explained[first:last])
    columns: dict[str, NDArray[Any]] = {}
    for part, own in _parts(weights):
        sizes = answers.sizes if part == "node" else np.maximum(answers.sizes - 1, 0)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = [np.arange(starts[i], starts[i + 1]) for i in chosen]
        found: Occurrences = own.rows[np.concatenate([np.zeros(0, dtype=np.int64), *rows])]
        columns[f"{part}_counts"] = small(np.diff(found.offsets))
        columns[f"{part}_ids"] = small(found.ids)
        if found.values is not None:
            columns[f"{part}_values"] = found.values.astype(np.float32)
    if weights.scores is not None:
        offsets = answers.offsets
        parts = [weights.scores[offsets[i] : offsets[i + 1]].ravel() for i in chosen]
        columns["scores"] = np.concatenate([np.zeros(0), *parts]).astype(np.float32)
    return block({}, columns)


def _parts(weights: Weights) -> Iterator[tuple[str, Attributes]]:
    if weights.node is not None:
        yield "node", weights.node
    if weights.edge is not None:
        yield "edge", weights.edge
