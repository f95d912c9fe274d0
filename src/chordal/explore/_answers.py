"""What a model says about a data set, and how that compares with the true labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.explore._labels import UNOBSERVED, Coder, Ints, LabelSets
from chordal.explore._subject import Subject
from chordal.progress import Progress
from chordal.structures import offsets_of

Floats = NDArray[np.float64]
Paths = list[list[tuple[Ints, float]]]

BLOCK = 500  # examples that are asked about at a time


@dataclass(frozen=True)
class Answers:
    """Labels are places in `labels`: those of the model, then true labels that it does not know.

    sets : the labels of the model
    sizes : variables (tokens, pixels, nodes) of each example
    gold : true labels of all variables, UNOBSERVED where there is none; None without labels
    predicted : predicted labels of all variables
    marginals : P(label) [n_variables, labels of a variable]; see `LabelSets`
    paths : of each example, its best labellings and their log-probabilities, best first
    loss : −log P(true labels) of sequences; else the mean of −log P(true label) over variables
    confidence : P of the least sure predicted label; of grids and graphs, the mean
    margin : P(best) − P(second best labelling) of sequences; else the mean over variables
    """

    labels: list[str]
    sets: LabelSets
    sizes: Ints
    gold: Ints | None
    predicted: Ints
    marginals: Floats
    paths: Paths
    loss: Floats | None
    confidence: Floats
    margin: Floats

    @property
    def n_classes(self) -> int:
        """Labels of the model."""
        return len(self.sets)

    @property
    def offsets(self) -> Ints:
        """Where the variables of each example begin."""
        return offsets_of(self.sizes)

    @cached_property
    def kinds(self) -> Ints:
        """The set of labels of each variable."""
        return self.sets.kinds(self.predicted)

    @cached_property
    def first(self) -> Ints:
        """The place of the first label that each variable may have."""
        return self.sets.first[self.kinds]

    @property
    def chances(self) -> Floats:
        """P of each predicted label."""
        return self.marginals[np.arange(len(self.predicted)), self.predicted - self.first]


def ask(subject: Subject, y: Any, k: int, progress: Progress) -> Answers:
    """Everything about all examples, a block at a time."""
    coder = Coder(subject.sets, getattr(subject.crf, "ignore_label", None))
    true = None if y is None else subject.gold(y)
    predicted: list[Ints] = []
    marginals: list[Floats] = []
    gold: list[Ints] = []
    paths: Paths = []
    losses = []
    for begin in range(0, subject.n, BLOCK):
        end = min(begin + BLOCK, subject.n)
        part = subject.part(begin, end)
        tables = _marginals(subject, part)
        found = subject.predicted(coder, part)
        marginals += tables
        predicted += found
        paths += subject.ranked(coder, part, k)
        if true is not None:
            _check_sizes(true[begin:end], found, begin)
            both = zip(true[begin:end], found, strict=True)
            own = [coder.gold(labels, subject.sets.kinds(codes)) for labels, codes in both]
            losses.append(_loss(subject, part, own, found, tables))
            gold += own
        pace = end / max(progress.elapsed, 1e-3)
        progress.update(end, f"{pace:,.0f} examples/s")
    return _answers(subject, coder, predicted, marginals, paths, gold, losses, true is not None)


def _answers(
    subject: Subject,
    coder: Coder,
    predicted: Sequence[Ints],
    marginals: Sequence[Floats],
    paths: Paths,
    gold: Sequence[Ints],
    losses: Sequence[Floats],
    labelled: bool,
) -> Answers:
    """The answers of all blocks as one."""
    none = np.zeros(0, dtype=np.int64)
    width = int(subject.sets.counts.max())
    every = np.concatenate([np.zeros((0, width)), *marginals])
    found, sizes = np.concatenate([none, *predicted]), [len(own) for own in predicted]
    local = found - subject.sets.first[subject.sets.kinds(found)]
    confidence, margin = _confidence(every, local, offsets_of(sizes), subject.least)
    if subject.joint:
        margin = np.array([_margin(own) for own in paths])
    return Answers(
        labels=subject.sets.names + coder.unknown,
        sets=subject.sets,
        sizes=np.array(sizes, dtype=np.int64),
        gold=np.concatenate([none, *gold]) if labelled else None,
        predicted=found,
        marginals=every,
        paths=paths or [[] for _ in sizes],
        loss=np.concatenate([np.zeros(0), *losses]) if labelled else None,
        confidence=confidence,
        margin=margin,
    )


def _marginals(subject: Subject, X: Any) -> list[Floats]:
    try:
        return subject.marginals(X)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"explore shows the probabilities of labels, and this model gives none: {error}"
        ) from None


def _check_sizes(gold: Sequence[Sequence[Any]], found: Sequence[Ints], begin: int) -> None:
    for i, (labels, codes) in enumerate(zip(gold, found, strict=True)):
        if len(labels) != len(codes):
            raise ValueError(
                f"y[{begin + i}] must have a label for each position of X[{begin + i}] "
                f"({len(codes)}), got {len(labels)}"
            )


def _loss(
    subject: Subject,
    X: Any,
    gold: Sequence[Ints],
    predicted: Sequence[Ints],
    tables: Sequence[Floats],
) -> Floats:
    if subject.joint:
        return _joint_loss(subject, X, gold, predicted)
    every = zip(gold, predicted, tables, strict=True)
    return np.array([_mean_loss(subject.sets, *own) for own in every])


def _joint_loss(
    subject: Subject, X: Any, gold: Sequence[Ints], predicted: Sequence[Ints]
) -> Floats:
    """−log P(y | x); infinite with a label that the model lacks, NaN where some are not known."""
    hidden = np.array([bool((own == UNOBSERVED).any()) for own in gold])
    unknown = np.array([bool((own >= len(subject.sets)).any()) for own in gold])
    classes = subject.model.classes_
    asked = [
        classes[other if skip else own].tolist()
        for own, other, skip in zip(gold, predicted, hidden | unknown, strict=True)
    ]
    loss = -np.asarray(subject.model.log_likelihood(X, asked))
    loss[unknown], loss[hidden & ~unknown] = np.inf, np.nan
    return np.maximum(loss, 0.0)


def _mean_loss(sets: LabelSets, gold: Ints, predicted: Ints, table: Floats) -> float:
    seen = np.flatnonzero(gold != UNOBSERVED)
    if not len(seen):
        return float("nan")
    if (gold[seen] >= len(sets)).any():
        return float("inf")
    local = gold[seen] - sets.first[sets.kinds(predicted[seen])]
    with np.errstate(divide="ignore"):
        return max(float(-np.log(table[seen, local]).mean()), 0.0)


def _margin(paths: Sequence[tuple[Ints, float]]) -> float:
    chances = [float(np.exp(chance)) for _, chance in paths[:2]]
    return chances[0] - chances[1] if len(chances) == 2 else 1.0


def _confidence(
    marginals: Floats, local: Ints, offsets: Ints, least: bool
) -> tuple[Floats, Floats]:
    """Of each example: the least or mean P of its predicted labels, and the mean margin."""
    own = marginals[np.arange(len(local)), local]
    others = marginals.copy()
    others[np.arange(len(local)), local] = -1.0
    second = np.maximum(others.max(axis=1, initial=0.0), 0.0)
    pairs = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    fold = np.min if least else np.mean
    confidence = np.array([fold(own[part]) if part.stop > part.start else 1.0 for part in pairs])
    margin = [
        np.mean(own[part] - second[part]) if part.stop > part.start else 1.0 for part in pairs
    ]
    return np.minimum(confidence, 1.0), np.array(margin)
