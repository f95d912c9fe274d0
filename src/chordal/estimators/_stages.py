"""The stages of `TwoStageCRF` on parts of the data, which may be in memory, on disk or elsewhere.

In memory there is one part, so that every fit takes this road.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._validate import (
    RandomState,
    check_same_lengths,
    check_sample_weight,
    check_sequences,
    generator_from,
)
from chordal.estimators._positions import PositionRows, kind_of_rows, rows_of
from chordal.estimators._training.crews import Handle, Tasks
from chordal.estimators._training.monitor import FitReport, whole_fits
from chordal.estimators._training.on_part import Given
from chordal.estimators._unary import UnaryPart
from chordal.estimators.chain_crf import GROUPS, ChainCRF, chain_crf, fitted_chain
from chordal.features import DenseInput, length_of
from chordal.labels import SequenceLabels, merged_labels

if TYPE_CHECKING:
    from chordal.estimators._wrapped import Train

Ints = NDArray[np.int64]


class Facts(NamedTuple):
    """Facts about a part."""

    n: int  # examples
    labels: SequenceLabels | None  # None if it has no positions
    weighted: bool
    kind: str  # of its first sequence


class Ranks(NamedTuple):
    """Folds of examples: each has a rank, and its fold is the rank modulo the number of folds."""

    n_folds: int
    of_parts: list[Ints]


class Asked(NamedTuple):
    """Parameters of `TwoStageCRF`, checked."""

    unary: Any
    cv: int | str
    scale: bool
    joint: bool
    random_state: RandomState
    settings: Mapping[str, Any]  # of the chain


class Staged(NamedTuple):
    """The fitted stages."""

    unary: UnaryPart
    chain: ChainCRF
    scale: float
    reports: list[FitReport]


def fit_stages(
    asked: Asked, crew: Tasks, parts: list[Handle], train: Train, checkpoint: object = None
) -> Staged:
    """Fit the classifier, then the chain, and with `joint` all weights; see `TwoStageCRF.fit`."""
    facts: list[Facts] = crew.fetch(crew.map(facts_of, parts))
    labels = _all_labels(facts)
    with whole_fits():  # but for the last stage
        unary, scores = _first_stage(asked, crew, parts, facts, labels.classes, train)
    linear = unary.linear(labels, _kind(facts)) if asked.joint else None
    with whole_fits() if asked.joint else nullcontext():
        kept = None if asked.joint else checkpoint
        chain = _second_stage(asked, scores, labels, train, kept)
    reports, scale = [chain.fit_report_], float(chain.coef_[0, 0])
    if linear is not None:
        joint = _joined(linear, chain, scale, asked.settings)
        chain = train(joint, list(parts), checkpoint=checkpoint)
        reports.append(chain.fit_report_)
    return Staged(unary, chain, scale, reports)


def facts_of(part: Given) -> Facts:
    """The facts of a part, checked."""
    if length_of(part.X) == 0:
        return Facts(0, None, False, "")
    X, y = check_sequences(part.X), check_sequences(part.y, "y")
    check_same_lengths(np.array([length_of(x) for x in X]), y)
    weight = check_sample_weight(part.weight, len(X))
    some = any(length_of(x) for x in X)
    labels = SequenceLabels.of(y) if some else None
    return Facts(len(X), labels, weight is not None, kind_of_rows(X[0]))


def _all_labels(facts: Sequence[Facts]) -> SequenceLabels:
    if not any(own.n for own in facts):
        raise ValueError("X is empty: give at least one sequence")
    found = [own.labels for own in facts if own.labels is not None]
    if not found:
        raise ValueError("y has no labels: every sequence is empty")
    return merged_labels(SequenceLabels(), found)[0]


def _kind(facts: Sequence[Facts]) -> str:
    return next(own.kind for own in facts if own.n)


def _first_stage(
    asked: Asked,
    crew: Tasks,
    parts: list[Handle],
    facts: Sequence[Facts],
    classes: NDArray[Any],
    train: Train,
) -> tuple[UnaryPart, list[Handle]]:
    """The classifier, and handles of scores of the training data (by default out of fold)."""
    with needed("sklearn", "TwoStageCRF"):
        from sklearn.base import clone

    default = ChainCRF(transitions="none", fit_intercept=True)
    given = UnaryPart(default if asked.unary is None else asked.unary, classes)
    weighted = any(own.weighted for own in facts)

    def fitted_to(chosen: Sequence[Handle]) -> Handle:
        made = clone(given.model)
        if given.own:
            return crew.share(UnaryPart(train(made, list(chosen)), classes))
        rows = crew.map(rows_of, chosen, weighted)
        return crew.join(fitted_unary, rows, UnaryPart(made, classes))

    ranks = _ranks(asked, [own.n for own in facts])
    if asked.cv == "prefit":
        everyone = crew.share(given)
    elif asked.cv == "same":
        everyone = fitted_to(parts)
    unaries = [everyone] if ranks.n_folds == 1 else []
    for fold in range(ranks.n_folds if not unaries else 0):
        chosen = crew.map(without_fold, parts, fold, ranks.n_folds, each=ranks.of_parts)
        unaries.append(fitted_to(chosen))
    if ranks.n_folds > 1:
        crew.check(unaries, "fold")
    scores = crew.map(scored_part, parts, unaries, each=ranks.of_parts)
    if ranks.n_folds > 1:
        everyone = fitted_to(parts)
    return crew.take(everyone), scores


def _ranks(asked: Asked, sizes: Sequence[int]) -> Ranks:
    """The folds of the examples of each part."""
    n = sum(sizes)
    limits = np.cumsum(sizes)[:-1]
    if asked.cv in ("same", "prefit"):
        return Ranks(1, np.split(np.arange(n), limits))
    n_folds = int(asked.cv)
    if n < n_folds:
        raise ValueError(f"cv={asked.cv} needs at least {asked.cv} sequences, got {n}")
    ranks = np.empty(n, dtype=np.int64)
    ranks[generator_from(asked.random_state).permutation(n)] = np.arange(n)
    return Ranks(n_folds, np.split(ranks, limits))


def without_fold(part: Given, fold: int, n_folds: int, ranks: Ints) -> Given:
    """The examples of a part that are not in this fold."""
    chosen = np.flatnonzero(ranks % n_folds != fold).tolist()
    weight = None if part.weight is None else np.asarray(part.weight)[chosen]
    return Given([part.X[i] for i in chosen], [part.y[i] for i in chosen], weight)


def fitted_unary(parts: Sequence[PositionRows | None], unary: UnaryPart) -> UnaryPart:
    """The classifier, fitted to the positions of all parts."""
    unary.fit([own for own in parts if own is not None])
    return unary


def scored_part(part: Given, unaries: Sequence[UnaryPart], ranks: Ints) -> Given:
    """Scores of a part, each sequence by the classifier of its fold, with labels and weights."""
    scores: list[Any] = [None] * len(ranks)
    folds = ranks % len(unaries)
    for fold, unary in enumerate(unaries):
        apart = np.flatnonzero(folds == fold)
        apart = apart[np.argsort(ranks[apart])]
        for i, found in zip(apart, unary.scores([part.X[i] for i in apart]), strict=True):
            scores[i] = found
    return Given(scores, part.y, part.weight)


def _second_stage(
    asked: Asked,
    scores: list[Handle],
    labels: SequenceLabels,
    train: Train,
    checkpoint: object,
) -> ChainCRF:
    """A chain on scores: its node weights are the identity, or with `scale` a multiple."""
    n = len(labels)
    chain = chain_crf(labels, DenseInput(n), np.eye(n))
    settings = asked.settings
    l2 = settings["l2"]
    l2 = dict(l2) if isinstance(l2, Mapping) else dict.fromkeys(GROUPS, l2)
    chain.set_params(**{**settings, "l2": {**l2, "node": 0.0}})
    if not asked.scale:
        chain.set_params(freeze=(*chain.freeze, "node"))
    scaled = "node" if asked.scale else None
    fitted: ChainCRF = train(chain, scores, scaled=scaled, checkpoint=checkpoint)
    return fitted


def _joined(
    unary: ChainCRF, links: ChainCRF, scale: float, settings: Mapping[str, Any]
) -> ChainCRF:
    """A chain on observations: node weights from one model, all others from the other."""
    if unary.labels_.labels != links.labels_.labels:
        raise UnsupportedError(
            "joint training needs a unary classifier that was fitted to the same y"
        )
    n, intercept = links.layout_.n_labels, np.zeros(links.layout_.n_labels)
    for model, factor in ((unary, scale), (links, 1.0)):
        own = model.weights_[model.layout_.slices["intercept"]]
        intercept[: len(own)] += factor * own
    kept = {
        name: (links.layout_[name].kept, links.weights_[links.layout_.slices[name]])
        for name in ("transitions", "start", "end")
    }
    joint = ChainCRF(**{**settings, "fit_intercept": True, "pairs": unary.pairs})
    kept["intercept"] = (np.arange(n), intercept)
    inputs, rows = {}, {}
    for name in ("node", "vectors"):
        source, features = unary.reader_.input(name), unary.layout_[name].rows
        if source is not None and features is not None:
            inputs[name] = source
            rows[name] = (features, scale * unary.weights_[unary.layout_.slices[name]])
    return fitted_chain(joint, links.labels_, inputs, rows, kept)
