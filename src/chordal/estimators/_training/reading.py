"""From what a user gives to `fit` to parts with targets, and the layout of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from chordal._validate import check_sample_weight
from chordal.estimators._still import still
from chordal.estimators._training.choosing import Data
from chordal.estimators._training.preparing import datasets_of
from chordal.estimators._training.stored import Stored
from chordal.features import (
    Batch,
    Part,
    Parts,
    Reader,
    layout_from,
    length_of,
    merged,
    seen_in,
    transferred,
)
from chordal.labels import SequenceLabels, targets_of
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.targets import PartialLabels, Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF


def read(
    estimator: BaseCRF, X: object, y: object, weights: object, objective: Objective, keep: bool
) -> Data:
    """From the user's X and y to parts with targets; works on copies of the model's state."""
    before = still(estimator) if keep else estimator  # another thread may fit it at the same time
    stored = datasets_of(X, y)
    if stored is not None:
        found = Stored(before, stored, keep)
        return read_stored(estimator, before, found, y, weights, objective, keep)
    X = estimator._examples(X, known=keep)
    if length_of(X) == 0:
        raise ValueError("X is empty: give at least one example")
    reader = estimator._new_reader(X, keep)
    if keep:
        reader = reader.knowing(before.reader_)
    labels = before.labels_.copy() if keep else estimator._new_labels()
    batch = reader.read(X, grow=True)
    flat = estimator._flat(y, X)
    estimator._check_lengths(batch.sizes, flat)
    weight = check_sample_weight(weights, len(batch.sizes))
    gold = labels.within(targets_of(labels, flat, estimator.ignore_label), batch.kinds)
    parts = Parts.of(*learnable(batch, gold, objective))
    return laid_out(before, reader, labels, parts, weight, keep)


def read_stored(
    estimator: BaseCRF,
    before: BaseCRF,
    stored: Stored,
    y: object,
    weights: object,
    objective: Objective,
    keep: bool,
) -> Data:
    """From prepared data sets to parts, each of which is read when it is needed."""
    if y is not None:
        raise ValueError("a prepared data set includes its labels: do not pass y")
    parts = Parts(
        lambda k: Part(*learnable(*stored.load(k), objective)), len(stored), stored.release
    )
    weight = stored.weights()
    if weights is not None and weight is not None:
        raise ValueError("the data set includes weights of its examples: do not pass sample_weight")
    if weights is not None:
        weight = check_sample_weight(weights, parts.n_examples)
    estimator._take_stored(stored.reader, stored.labels, keep)
    return laid_out(before, stored.reader, stored.labels, parts, weight, keep)


def laid_out(
    estimator: BaseCRF,
    reader: Reader,
    labels: SequenceLabels,
    parts: Parts,
    weight: Floats | None,
    keep: bool,
) -> Data:
    """What was read with its weights: those that are known, and those of what is seen."""
    if weight is not None and not weight.any():
        raise ValueError("sample_weight is zero for every example: give some a positive weight")
    known = estimator.layout_ if keep else None
    settings = (estimator.pairs, estimator.min_freq, known)
    seen = (seen_in(reader, *part, labels.counts, estimator.pairs) for part in parts)
    layout = layout_from(reader, merged(seen), labels.counts, *settings)
    start = np.zeros(layout.n_weights)
    if known is not None:
        start = transferred(known, estimator.weights_, layout)
    return Data(reader, labels, parts, weight, layout, start)


def learnable(batch: Batch, gold: Target, objective: Objective) -> tuple[Batch, Target]:
    """The data without unobserved variables, if the objective cannot use them."""
    if not isinstance(gold, PartialLabels) or "partial" in objective.targets:
        return batch, gold
    known = gold.known()
    if known is None:
        return batch, gold  # sets of labels: refused by the objective
    return batch.kept(known[0]), known[1]
