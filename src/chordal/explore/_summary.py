"""What the overview of a page counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal._schemes import scheme_of
from chordal.explore._answers import Answers, Floats
from chordal.explore._blocks import plain
from chordal.explore._labels import UNOBSERVED, Ints
from chordal.metrics import chunk_scores

N_BINS = 10


def figures(answers: Answers, chunks: bool) -> dict[str, Any]:
    """Counts and scores of all examples; `chunks` for sequences, whose labels may mark spans."""
    out: dict[str, Any] = {
        "n_examples": len(answers.sizes),
        "n_variables": int(answers.sizes.sum()),
        "mean_confidence": _mean(answers.confidence),
    }
    if answers.gold is None or answers.loss is None:
        counts = np.bincount(answers.predicted, minlength=len(answers.labels))
        return {**out, "predicted": counts.tolist()}
    seen = answers.gold != UNOBSERVED
    gold, found = answers.gold[seen], answers.predicted[seen]
    wrong = seen & (answers.gold != answers.predicted)
    per_example = _sums(wrong, answers.offsets)
    known = answers.loss[~np.isnan(answers.loss)]
    finite = known[np.isfinite(known)]
    return {
        **out,
        "n_observed": int(seen.sum()),
        "n_right": int((gold == found).sum()),
        "n_right_examples": int((per_example == 0).sum()),
        "mean_loss": _mean(finite),
        "n_infinite": len(known) - len(finite),
        "classes": _classes(gold, found, len(answers.labels)),
        "confusion": _confusion(gold, found, len(answers.labels)),
        "calibration": _calibration(answers, seen),
        "chunks": _chunks(answers) if chunks and seen.all() else None,
    }


def _mean(values: Floats) -> float | None:
    return plain(values.mean()) if len(values) else None


def _sums(flags: Any, offsets: Ints) -> Ints:
    totals = np.concatenate([[0], np.cumsum(flags)])
    return totals[offsets[1:]] - totals[offsets[:-1]]


def _classes(gold: Ints, found: Ints, n: int) -> list[list[Any]]:
    """Of each label: true, predicted, right, precision, recall, F1."""
    true, predicted = np.bincount(gold, minlength=n), np.bincount(found, minlength=n)
    right = np.bincount(gold[gold == found], minlength=n)
    rows = []
    for t, p, r in zip(true.tolist(), predicted.tolist(), right.tolist(), strict=True):
        precision, recall = r / p if p else 0.0, r / t if t else 0.0
        f1 = 2 * r / (t + p) if t + p else 0.0
        rows.append([t, p, r, plain(precision), plain(recall), plain(f1)])
    return rows


def _confusion(gold: Ints, found: Ints, n: int) -> list[list[int]]:
    """True label, predicted label and how often, of the pairs that occur."""
    pairs, counts = np.unique(gold * n + found, return_counts=True)
    return np.stack([pairs // n, pairs % n, counts], axis=1).tolist()


def _calibration(answers: Answers, seen: Any) -> list[list[Any]]:
    """By tenths of the probability of the predicted label: how many, their mean, share right."""
    chances = answers.chances[seen]
    assert answers.gold is not None
    right = answers.gold[seen] == answers.predicted[seen]
    bins = np.minimum((chances * N_BINS).astype(np.int64), N_BINS - 1)
    rows = []
    for k in range(N_BINS):
        own = bins == k
        n = int(own.sum())
        rows.append(
            [n, plain(chances[own].mean()) if n else 0, plain(right[own].mean()) if n else 0]
        )
    return rows


def _chunks(answers: Answers) -> dict[str, Any] | None:
    """Scores of spans by conlleval's rules, where labels are tags of a scheme."""
    if scheme_of(answers.labels) is None:
        return None
    names, limits = np.array(answers.labels, dtype=object), answers.offsets[1:-1]
    assert answers.gold is not None
    true = [own.tolist() for own in np.split(names[answers.gold], limits)]
    found = [own.tolist() for own in np.split(names[answers.predicted], limits)]
    scores = chunk_scores(true, found)
    rows = [
        [name, s.true, s.found, s.correct, plain(s.precision), plain(s.recall), plain(s.f1)]
        for name, s in scores.types.items()
    ]
    return {"f1": plain(scores.overall.f1), "types": rows}
