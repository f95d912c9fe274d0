"""The blocks of a page: its list of examples, details of some of them, weights and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.explore._answers import Answers
from chordal.explore._blocks import block, small
from chordal.explore._labels import UNOBSERVED, Ints
from chordal.explore._links import Links
from chordal.explore._shapes import Shapes
from chordal.explore._weights import Attributes, Weights
from chordal.structures import offsets_of

CHUNK = 8000  # variables whose details are unpacked together
LEAST = 0.01  # probability that is kept
COST = 1000.0  # units per nat of −log P; the largest is 65.535 nats

Flags = NDArray[np.bool_]


def chunks_of(sizes: Ints) -> list[tuple[int, int]]:
    """First and last example, exclusive, of chunks of about CHUNK variables."""
    out, first, total = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if i > first and total + size > CHUNK:
            out.append((first, i))
            first, total = i, 0
        total += size
    return [*out, (first, len(sizes))]


def explained_examples(answers: Answers, weights: Weights, most: int) -> Flags:
    """The examples whose attributes the page keeps: those of the highest loss first."""
    n = len(answers.sizes)
    counts = np.zeros(n, dtype=np.int64)
    for part, own in _parts(weights):
        counts += np.diff(own.rows.offsets[offsets_of(_rows_of(answers, part, own))])
    if weights.scores is not None:
        counts += np.diff(_states(answers))
    elif weights.node is None:
        return np.zeros(n, dtype=bool)
    if weights.links is not None:
        counts += np.diff(_cells(weights.links))
    by = -answers.confidence if answers.loss is None else np.nan_to_num(answers.loss, nan=-1.0)
    order = np.argsort(-by, kind="stable")
    out = np.zeros(n, dtype=bool)
    out[order[np.cumsum(counts[order]) <= most]] = True
    return out


def list_block(answers: Answers, shapes: Shapes, explained: Flags) -> str:
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
    if shapes.names:
        columns["tokens"] = small(shapes.tokens)
    if shapes.kind == "grid":
        columns["heights"], columns["widths"] = small(shapes.sizes[:, 0]), small(shapes.sizes[:, 1])
    elif len(shapes.pixels):
        columns["pixels"] = shapes.pixels
    for name, own in shapes.columns.items():
        columns[name] = own if own.dtype.kind == "f" else small(own)
    return block({"names": shapes.names, **shapes.listed}, columns)


def details_block(
    answers: Answers, shapes: Shapes, links: Links | None, whole: bool, first: int, last: int
) -> str:
    """Marginals from LEAST on, with those of true and predicted labels; the best labellings."""
    begin, end = int(answers.offsets[first]), int(answers.offsets[last])
    row, label, costs = _marginals(answers, whole, begin, end)
    own = answers.paths[first:last]
    paths = [codes for of_example in own for codes, _ in of_example]
    columns = {
        "counts": small(np.bincount(row, minlength=end - begin)),
        "labels": small(label),
        "costs": costs,
        "k": small(np.array([len(of_example) for of_example in own], dtype=np.int64)),
        "paths": small(np.concatenate([np.zeros(0, dtype=np.int64), *paths])),
        "chances": np.array([c for of_example in own for _, c in of_example], dtype=np.float32),
    }
    if shapes.kind == "grid" and shapes.facts["channels"]:
        channels = shapes.facts["channels"]
        columns["pixels"] = shapes.pixels[begin * channels : end * channels]
    if links is not None:
        a, b = links.offsets[[first, last]]
        members = links.member_offsets[[a, b]]
        columns["clique_counts"] = small(links.counts[first:last])
        columns["clique_orders"] = small(links.orders[a:b])
        columns["clique_members"] = small(links.members[slice(*members)])
    if shapes.positions is not None:
        columns["positions"] = shapes.positions[begin:end].astype(np.float32).ravel()
    return block({}, columns)


def _marginals(
    answers: Answers, whole: bool, begin: int, end: int
) -> tuple[Ints, Ints, NDArray[np.uint16]]:
    """Variables, labels and −log P of the probabilities that the page keeps."""
    table, base = answers.marginals[begin:end], answers.first[begin:end]
    counts = answers.sets.counts[answers.kinds[begin:end]]
    kept = np.full(table.shape, whole) | (table >= LEAST)
    kept[np.arange(end - begin), answers.predicted[begin:end] - base] = True
    if answers.gold is not None:
        gold = answers.gold[begin:end]
        seen = np.flatnonzero((gold >= 0) & (gold < answers.n_classes))
        kept[seen, (gold - base)[seen]] = True
    kept &= np.arange(table.shape[1]) < counts[:, None]
    row, label = np.nonzero(kept)
    with np.errstate(divide="ignore"):
        costs = np.rint(np.minimum(-np.log(table[row, label]) * COST, 65535.0))
    return row, label + base[row], np.maximum(costs, 0).astype(np.uint16)


def weights_block(weights: Weights) -> str:
    """Names and weights of attributes."""
    facts: dict[str, Any] = {"meanings": weights.meanings}
    columns: dict[str, NDArray[Any]] = {}
    for part, own in _parts(weights):
        facts[part] = own.names
        facts[f"{part}_shared"] = own.shared
        columns[f"{part}_counts"] = small(np.diff(own.starts))
        columns[f"{part}_outputs"] = small(own.outputs)
        columns[f"{part}_weights"] = own.weights.astype(np.float32)
    return block(facts, columns)


def rows_block(answers: Answers, weights: Weights, explained: Flags, first: int, last: int) -> str:
    """The attributes of explained examples, one after another; their scores and links."""
    chosen = first + np.flatnonzero(explained[first:last])
    columns: dict[str, NDArray[Any]] = {}
    for part, own in _parts(weights):
        starts = offsets_of(_rows_of(answers, part, own))
        rows = [np.arange(starts[i], starts[i + 1]) for i in chosen]
        found = own.rows[np.concatenate([np.zeros(0, dtype=np.int64), *rows])]
        columns[f"{part}_counts"] = small(np.diff(found.offsets))
        columns[f"{part}_ids"] = small(found.ids)
        if found.values is not None:
            columns[f"{part}_values"] = found.values.astype(np.float32)
    if weights.scores is not None:
        columns["scores"] = _pieces(weights.scores, _states(answers), chosen)
    if weights.links is not None:
        columns["links"] = _pieces(weights.links.scores, _cells(weights.links), chosen)
    return block({}, columns)


def _pieces(values: NDArray[Any], starts: Ints, chosen: Ints) -> NDArray[np.float32]:
    parts = [values[starts[i] : starts[i + 1]] for i in chosen]
    return np.concatenate([np.zeros(0), *parts]).astype(np.float32)


def _states(answers: Answers) -> Ints:
    """Where the labels of the variables of each example begin."""
    return offsets_of(answers.sets.counts[answers.kinds])[answers.offsets]


def _cells(links: Links) -> Ints:
    """Where the scores of the cliques of each example begin."""
    return links.starts[links.member_offsets[links.offsets]]


def _rows_of(answers: Answers, part: str, own: Attributes) -> Ints:
    """How many rows of attributes each example has."""
    if own.shared:
        return np.ones(len(answers.sizes), dtype=np.int64)
    return answers.sizes if part == "node" else np.maximum(answers.sizes - 1, 0)


def _parts(weights: Weights) -> Iterator[tuple[str, Attributes]]:
    if weights.node is not None:
        yield "node", weights.node
    if weights.edge is not None:
        yield "edge", weights.edge
