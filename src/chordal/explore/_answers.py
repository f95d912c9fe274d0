"""What a model says about a data set, and how that compares with the true labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import check_sequences
from chordal.structures import offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNOBSERVED = -1
BLOCK = 500  # examples that are asked about at a time


class Model(Protocol):
    """What is asked: a fitted estimator."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> Any:
        """The labels of each example."""

    def predict_marginals(self, X: Any) -> Any:
        """The probabilities of labels."""

    def k_best(self, X: Any, k: int = 5) -> list[list[tuple[Any, float]]]:
        """The best labellings with their log-probabilities."""

    def log_likelihood(self, X: Any, y: Any) -> Floats:
        """log P(y | x) of each example."""


@dataclass(frozen=True)
class Answers:
    """Labels are places in `labels`: the classes of the model, then true labels that it lacks.

    sizes : variables (tokens, pixels) of each example
    gold : true labels of all variables, UNOBSERVED where there is none; None without labels
    predicted : predicted labels of all variables
    marginals : P(label) [n_variables, n_classes]
    paths : of each example, its best labellings and their log-probabilities, best first
    loss : −log P(true labels); of grids, the mean of −log P(true label of a pixel)
    confidence : P of the least sure predicted label; of grids, the mean
    margin : P(best) − P(second best labelling); of grids, the mean over pixels
    """

    labels: list[str]
    n_classes: int
    sizes: Ints
    gold: Ints | None
    predicted: Ints
    marginals: Floats
    paths: list[list[tuple[Ints, float]]]
    loss: Floats | None
    confidence: Floats
    margin: Floats

    @property
    def offsets(self) -> Ints:
        """Where the variables of each example begin."""
        return offsets_of(self.sizes)


def ask(
    model: Model, X: Any, y: Any, k: int, joint: bool, watch: Callable[[int, int], None]
) -> Answers:
    """Everything about all examples, a block at a time; `joint` for models of sequences."""
    classes = [str(label) for label in model.classes_.tolist()]
    known = {label: i for i, label in enumerate(model.classes_.tolist())}
    n = len(X)
    if y is not None:
        y = check_sequences(y, "y", empty=True)
        if len(y) != n:
            raise ValueError(f"y must have one entry per example ({n}), got {len(y)}")
    predicted, marginals, paths, losses, sizes = [], [], [], [], []
    ignored = getattr(getattr(model, "crf_", model), "ignore_label", None)
    gold = None if y is None else _gold(y, known, ignored)
    for begin in range(0, n, BLOCK):
        part = X[begin : begin + BLOCK]
        labels = model.predict(part)
        predicted += [_codes(own, known) for own in labels]
        tables = [
            np.asarray(own).reshape(-1, len(classes)) for own in model.predict_marginals(part)
        ]
        marginals += tables
        sizes += [len(own) for own in tables]
        if joint:
            paths += [
                [(_codes(own, known), chance) for own, chance in of_example]
                for of_example in model.k_best(part, k)
            ]
        if y is not None and gold is not None:
            own_y, own_gold = y[begin : begin + BLOCK], gold[0][begin : begin + BLOCK]
            _check_sizes(own_gold, tables, begin)
            if joint:
                losses.append(_joint_loss(model, part, own_y, own_gold, labels, len(classes)))
            else:
                pairs = zip(own_gold, tables, strict=True)
                losses.append(np.array([_mean_loss(codes, table) for codes, table in pairs]))
        watch(min(begin + BLOCK, n), n)
    all_marginals = np.concatenate([np.zeros((0, len(classes))), *marginals])
    found = np.concatenate([np.zeros(0, dtype=np.int64), *predicted])
    offsets = offsets_of(sizes)
    confidence, margin = _confidence(all_marginals, found, offsets, joint)
    if joint:
        margin = np.array([_margin(own) for own in paths])
    return Answers(
        labels=classes + ([] if gold is None else gold[1]),
        n_classes=len(classes),
        sizes=np.array(sizes, dtype=np.int64),
        gold=None if gold is None else np.concatenate([np.zeros(0, dtype=np.int64), *gold[0]]),
        predicted=found,
        marginals=all_marginals,
        paths=paths or [[] for _ in sizes],
        loss=None if gold is None else np.concatenate([np.zeros(0), *losses]),
        confidence=confidence,
        margin=margin,
    )


def _listed(labels: Any) -> list[Any]:
    return np.asarray(labels).ravel().tolist() if isinstance(labels, np.ndarray) else list(labels)


def _codes(labels: Any, known: dict[Any, int]) -> Ints:
    return np.array([known[label] for label in _listed(labels)], dtype=np.int64)


def _gold(y: Sequence[Any], known: dict[Any, int], ignored: object) -> tuple[list[Ints], list[str]]:
    """True labels as numbers, and the names of those that the model does not have."""
    numbers = dict(known)
    by_name = {str(label): number for label, number in known.items()}
    more: list[str] = []

    def number(label: Any) -> int:
        if label is None or (ignored is not None and label == ignored):
            return UNOBSERVED
        try:
            found = numbers.get(label)
        except TypeError:
            raise UnsupportedError(
                f"explore shows one true label per variable, got {label!r}; give None where it is "
                "not known"
            ) from None
        if found is None:  # files hold labels as text, models perhaps as numbers
            found = by_name.get(str(label))
            if found is None:
                found = by_name[str(label)] = len(by_name)
                more.append(str(label))
            numbers[label] = found
        return found

    return [np.array([number(v) for v in _listed(own)], dtype=np.int64) for own in y], more


def _check_sizes(gold: Sequence[Ints], tables: Sequence[Floats], begin: int) -> None:
    for i, (codes, table) in enumerate(zip(gold, tables, strict=True)):
        if len(codes) != len(table):
            raise ValueError(
                f"y[{begin + i}] must have {len(table)} labels as X[{begin + i}], got {len(codes)}"
            )


def _joint_loss(
    model: Model,
    X: Any,
    y: Sequence[Any],
    gold: Sequence[Ints],
    predicted: Any,
    n_classes: int,
) -> Floats:
    """−log P(y | x); infinite with a label that the model lacks, NaN where some are not known."""
    hidden = np.array([bool((own == UNOBSERVED).any()) for own in gold])
    unknown = np.array([bool((own >= n_classes).any()) for own in gold])
    classes = model.classes_
    asked = [
        list(other) if skip else classes[own].tolist()
        for own, other, skip in zip(gold, predicted, hidden | unknown, strict=True)
    ]
    loss = -np.asarray(model.log_likelihood(X, asked))
    loss[unknown], loss[hidden & ~unknown] = np.inf, np.nan
    return np.maximum(loss, 0.0)


def _mean_loss(gold: Ints, table: Floats) -> float:
    seen = np.flatnonzero(gold != UNOBSERVED)
    if not len(seen):
        return float("nan")
    if (gold[seen] >= table.shape[1]).any():
        return float("inf")
    with np.errstate(divide="ignore"):
        return float(-np.log(table[seen, gold[seen]]).mean())


def _margin(paths: Sequence[tuple[Ints, float]]) -> float:
    chances = [float(np.exp(chance)) for _, chance in paths[:2]]
    return chances[0] - chances[1] if len(chances) == 2 else 1.0


def _confidence(
    marginals: Floats, predicted: Ints, offsets: Ints, least: bool
) -> tuple[Floats, Floats]:
    """Of each example: the least or mean P of its predicted labels, and the mean margin."""
    own = marginals[np.arange(len(predicted)), predicted]
    others = marginals.copy()
    others[np.arange(len(predicted)), predicted] = -1.0
    second = np.maximum(others.max(axis=1, initial=0.0), 0.0)
    pairs = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    fold = np.min if least else np.mean
    confidence = np.array([fold(own[part]) if part.stop > part.start else 1.0 for part in pairs])
    margin = [
        np.mean(own[part] - second[part]) if part.stop > part.start else 1.0 for part in pairs
    ]
    return np.minimum(confidence, 1.0), np.array(margin)
