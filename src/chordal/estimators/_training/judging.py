"""Evaluate a model: validation scores, "map" against "mpm", and completions of sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators._asking import FEW, WAYS, decoded, decoding, method_for
from chordal.estimators._training.fingerprint import digest
from chordal.estimators._training.known import known_parts
from chordal.estimators._training.preparing import datasets_of
from chordal.features import Batch, Layout, Reader, Shard, length_of
from chordal.inference import Inference, Pace
from chordal.labels import SequenceLabels, observed, single_labels
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.targets import PartialLabels, SoftLabels, Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

PART = 100_000  # variables of training examples on which ways of prediction are compared
LARGE = 2_000_000  # cells of all cliques' tables beyond which they are compared by rough answers


@dataclass(frozen=True)
class Validator:
    """Compiled validation data: computes the share of labels that given weights predict correctly.

    The checksum identifies the data.
    """

    estimator: BaseCRF
    layout: Layout
    shards: Sequence[Shard]
    right: Target
    seen: NDArray[np.bool_]
    checksum: str

    @classmethod
    def of(
        cls,
        estimator: BaseCRF,
        X: object,
        y: object,
        reader: Reader,
        labels: SequenceLabels,
        layout: Layout,
    ) -> Validator:
        """A validator for a model with this reader, labels and layout.

        X and y are examples, or X names data sets and y is None.
        """
        shards: list[Shard] = []
        gold: list[Any] = []
        seen, marks = [], []
        for batch, flat in _read(estimator, X, y, reader, labels):
            shards += [layout.compile(batch, a, b) for a, b in batch.limits(layout.counts)]
            gold.append(labels.within(labels.encode(flat, unknown=-1), batch.kinds))
            seen.append(observed(flat, estimator.ignore_label))
            marks.append(digest([batch, gold[-1], seen[-1]]))
        right = np.concatenate(gold)
        return cls(estimator, layout, shards, right, np.concatenate(seen), digest(marks))

    def required(self) -> Validator:
        """This validator; an error if there is nothing to score."""
        check_observed(int(self.seen.sum()), "validation ")
        return self

    def counts(self, weights: Floats) -> tuple[int, int]:
        """The number of correct labels, and of all labels."""
        expanded, question = self.layout.expand(weights), decoding(self.estimator)
        found = []
        for shard in self.shards:
            potentials = self.layout.potentials(shard, expanded)
            method = method_for(self.estimator, question, potentials, Pace.MOMENTS)
            found.append(decoded(potentials, method, question))
        right = (np.concatenate(found) == self.right)[self.seen]
        return int(right.sum()), len(right)

    def __call__(self, weights: Floats) -> float:
        """The share of correct labels."""
        right, n = self.counts(weights)
        return right / n


def check_observed(n: int, name: str) -> None:
    """Raise an error if none of the labels is observed."""
    if not n:
        raise ValueError(f"{name}y has no observed label")


def _read(
    estimator: BaseCRF, X: object, y: object, reader: Reader, labels: SequenceLabels
) -> Iterator[tuple[Batch, Sequence[Any]]]:
    """Validation data: the batch and the labels of all examples, or of each part on disk."""
    datasets = datasets_of(X, y)
    if datasets is not None:
        for part in known_parts(estimator, reader, datasets):
            yield part.batch, part.labels
        return
    X = estimator._examples(X, "validation X")
    if length_of(X) == 0:
        raise ValueError("validation X is empty: give at least one example")
    batch = reader.read(X, grow=False)
    flat = estimator._flat(y, X, "validation y")
    estimator._check_lengths(batch.sizes, flat, "validation ")
    yield batch, single_labels(labels, flat)


def converged(
    inference: Inference,
    objective: Objective,
    layout: Layout,
    shards: Sequence[Shard],
    weights: Floats,
) -> bool | None:
    """Whether inference converges on all shards at these weights; None if it does not iterate."""
    asked = next((q for q in ("marginals", "relaxed_map", "map") if q in objective.needs), None)
    if asked is None:
        return None
    expanded, settled = layout.expand(weights), None
    for shard in shards:
        ended = getattr(inference, asked)(layout.potentials(shard, expanded)).convergence
        if ended is not None:
            settled = ended.status.succeeded
        if settled is False:
            break
    return settled


def prediction_facts(
    estimator: BaseCRF,
    objective: Objective,
    layout: Layout,
    shards: Sequence[Shard],
    weights: Floats,
) -> dict[str, Any]:
    """The report's facts on predictions for graphs with loops.

    For smooth objectives, which learn probabilities, "map" and "mpm" are compared on the training
    examples: all, or the first with `PART` variables. If these have more than `LARGE` table cells,
    inference stops early for the comparison, which changes few labels.
    """
    known: dict[str, Any] = {"label_share": largest_share(shards)}
    if estimator.prediction != "auto" or not objective.smooth:
        return known
    counts = way_counts(estimator, layout, shards, weights)
    return known if counts is None else {**known, **better_way(*counts[:2])}


#: How many labels each way of prediction gets right, the weight of all, and how many variables.
WayCounts = tuple[dict[str, float], float, int]


def way_counts(
    estimator: BaseCRF, layout: Layout, shards: Sequence[Shard], weights: Floats
) -> WayCounts | None:
    """Correct labels by "map" and by "mpm" on the first shards; None if one is unsupported."""
    expanded, n = layout.expand(weights), 0
    right, total = dict.fromkeys(WAYS, 0.0), 0.0
    try:
        for shard in shards:
            structure, gold = shard.frame.structure, _known(shard.labels)
            weight = np.ones(structure.n_examples) if shard.weight is None else shard.weight
            counts = np.repeat(weight, np.diff(structure.variable_offsets))
            for way, question in WAYS.items():
                potentials = layout.potentials(shard, expanded)
                if np.isneginf(potentials.tables).any():
                    return None  # most probable labels may break what is forbidden
                method = method_for(estimator, question, potentials, Pace.MOMENTS)
                if estimator.inference == "auto" and structure.table_sizes.sum() > LARGE:
                    method = method.rough()
                found = decoded(potentials, method, question)
                right[way] += float(counts[found == gold].sum())
            total += float(counts[gold >= 0].sum())
            n += structure.n_variables
            if n >= PART:
                break
    except UnsupportedError:  # the inference asked for has one of the answers only
        return None
    return right, total, n


def better_way(right: Mapping[str, float], total: float) -> dict[str, Any]:
    """The report's facts on "map" against "mpm"."""
    if not total > 0.0:
        return {}
    scores = {way: right[way] / total for way in WAYS}
    better = "mpm" if scores["mpm"] > scores["map"] else "map"
    return {"prediction": better, "prediction_scores": scores}


def largest_share(shards: Sequence[Shard]) -> float:
    """The largest share of one label among an example's known labels, over examples with at least
    `FEW` known labels; 0 if there is none.
    """
    largest = 0.0
    for shard in shards:
        structure, gold = shard.frame.structure, _known(shard.labels)
        n = int(structure.label_counts.max(initial=1))
        sizes = np.diff(structure.variable_offsets)
        example = np.repeat(np.arange(structure.n_examples), sizes)[gold >= 0]
        cells = np.bincount(example * n + gold[gold >= 0], minlength=len(sizes) * n)
        counts = cells.reshape(-1, n)
        counts = counts[counts.sum(axis=1) >= FEW]
        largest = max(largest, float((counts.max(axis=1) / counts.sum(axis=1)).max(initial=0.0)))
    return largest


def _known(target: Target | None) -> NDArray[np.int64]:
    """The label of every variable, the most probable of a distribution; −1 if unknown."""
    if not isinstance(target, (SoftLabels, PartialLabels)):
        return np.asarray(target, dtype=np.int64)
    starts, counts = target.state_offsets[:-1], np.diff(target.state_offsets)
    soft = isinstance(target, SoftLabels)
    values = target.probability if isinstance(target, SoftLabels) else target.allowed
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    best = values == np.repeat(np.maximum.reduceat(values, starts), counts)
    variable, first = np.unique(np.repeat(np.arange(len(counts)), counts)[best], return_index=True)
    found = np.flatnonzero(best)[first] - starts[variable]
    several = np.add.reduceat(best.astype(np.int64), starts) > 1
    return np.where(several & (not soft), -1, found)


def completions(
    layout: Layout,
    shards: Sequence[Shard],
    sets: Sequence[Target | None],
    inference: Inference,
    weights: Floats,
) -> list[Target | None]:
    """The best labelling within the sets of each shard."""
    expanded, found = layout.expand(weights), list[Target | None]()
    for shard, own in zip(shards, sets, strict=True):
        potentials = layout.potentials(shard, expanded)
        if isinstance(own, PartialLabels):
            found.append(inference.map(own.clamped(potentials)).labels)
        else:
            found.append(own)
    return found


def lower_losses(
    objective: Objective,
    layout: Layout,
    shards: Sequence[Shard],
    labels: Sequence[Target | None],
    inference: Inference,
    weights: Floats,
) -> tuple[list[Target | None], bool]:
    """The new labels for examples whose loss they lower, and whether there are any."""
    expanded, taken, changed = layout.expand(weights), list[Target | None](), False
    for shard, new in zip(shards, labels, strict=True):
        old, structure = shard.labels, shard.frame.structure
        losses = []
        for own in (old, new):
            potentials = layout.potentials(shard, expanded)
            losses.append(objective.evaluate(potentials, own, inference).values)
        falls = losses[1] < losses[0] - 1e-9 * (1.0 + np.abs(losses[0]))
        of_variable = np.repeat(falls, np.diff(structure.variable_offsets))
        taken.append(np.where(of_variable, np.asarray(new), np.asarray(old)).astype(np.int32))
        changed |= bool(falls.any())
    return taken, changed
