"""How good a model is: on validation data, by each way of prediction, with each completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators._asking import FEW, WAYS, decoded, decoding, method_for
from chordal.estimators._choosing import Data
from chordal.estimators._fingerprint import digest
from chordal.features import Layout, Shard, length_of
from chordal.inference import Inference, Pace
from chordal.labels import observed
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.targets import PartialLabels, SoftLabels, Target

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

PART = 100_000  # variables of training examples on which ways of prediction are compared


@dataclass(frozen=True)
class Validator:
    """Scores weights on validation data, which the checksum stands for."""

    score: Callable[[Floats], float]
    checksum: str

    def __call__(self, weights: Floats) -> float:
        return self.score(weights)


def validator(estimator: BaseCRF, X: object, y: object, data: Data) -> Validator:
    """The share of the labels of the validation data that given weights get right."""
    X = estimator._examples(X, "validation X")
    if length_of(X) == 0:
        raise ValueError("validation X is empty: give at least one example")
    batch, layout = data.reader.read(X, grow=False), data.layout
    flat = estimator._flat(y, X, "validation y")
    estimator._check_lengths(batch.sizes, flat, "validation ")
    gold, seen = data.labels.encode(flat, unknown=-1), observed(flat, estimator.ignore_label)
    shards = [layout.compile(batch, a, b) for a, b in batch.limits(layout.counts)]
    right, question = data.labels.within(gold, batch.kinds), decoding(estimator)

    def score(weights: Floats) -> float:
        expanded = layout.expand(weights)
        found = []
        for shard in shards:
            potentials = layout.potentials(shard, expanded)
            method = method_for(estimator, question, potentials, Pace.MOMENTS)
            found.append(decoded(potentials, method, question))
        return float((np.concatenate(found) == right)[seen].mean())

    return Validator(score, digest([batch, right, seen]))


def converged(
    inference: Inference,
    objective: Objective,
    layout: Layout,
    shards: Sequence[Shard],
    weights: Floats,
) -> bool | None:
    """Whether inference converges everywhere at a solver's weights; None: it does not iterate."""
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
    """What the report says of predictions on graphs with loops.

    Smooth objectives learn probabilities. There both ways of prediction are compared on training
    examples: all of them, or the first with `PART` variables.
    """
    known: dict[str, Any] = {"label_share": largest_share(shards)}
    if estimator.prediction != "auto" or not objective.smooth:
        return known
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
                    return known  # most probable labels may break what is forbidden
                method = method_for(estimator, question, potentials, Pace.MOMENTS)
                found = decoded(potentials, method, question)
                right[way] += float(counts[found == gold].sum())
            total += float(counts[gold >= 0].sum())
            n += structure.n_variables
            if n >= PART:
                break
    except UnsupportedError:  # the inference asked for has one of the answers only
        return known
    if not total > 0.0:
        return known
    scores = {way: right[way] / total for way in WAYS}
    better = "mpm" if scores["mpm"] > scores["map"] else "map"
    return {**known, "prediction": better, "prediction_scores": scores}


def largest_share(shards: Sequence[Shard]) -> float:
    """The largest share that one label has of an example's known ones, where these are `FEW` or
    more; 0 where all examples are smaller.
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
    """The label of every variable, the likeliest of a distribution; −1 where it is not known."""
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
    """Of each example the new labels where its loss is then lower, and whether any is."""
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
