"""Metrics of word alignments."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chordal._validate import array_of, check_sequences

Link = tuple[int, int]


@dataclass(frozen=True)
class AlignmentScores:
    """Counts of links, and the metrics that follow from them.

    Attributes
    ----------
    found, sure : int
        Predicted links, and sure links of the reference.
    found_sure, found_possible : int
        Predicted links that are sure, and that are possible.
    """

    found: int
    sure: int
    found_sure: int
    found_possible: int

    @property
    def precision(self) -> float:
        """The share of predicted links that are possible; 0 if there are none."""
        return self.found_possible / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of sure links that are predicted; 0 if there are none."""
        return self.found_sure / self.sure if self.sure else 0.0

    @property
    def error_rate(self) -> float:
        """`1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)`; 0 if there are no links at all."""
        total = self.found + self.sure
        return 1.0 - (self.found_sure + self.found_possible) / total if total else 0.0


def alignment_scores(
    sure: Sequence[Iterable[Link]],
    predicted: Sequence[Any],
    possible: Sequence[Iterable[Link]] | None = None,
) -> AlignmentScores:
    """Compare predicted alignments with sure and possible links.

    Parameters
    ----------
    sure : list of sets of pairs (source, target), one set per sentence pair
    predicted : list of such sets, or of arrays with the target of every source word, −1 for none
    possible : list of sets of pairs, optional
        Links that are not errors; they always include the sure ones.

    References
    ----------
    Och and Ney (2003), A systematic comparison of various statistical alignment models.

    Examples
    --------
    >>> scores = alignment_scores([{(0, 0), (1, 2)}], [[0, 1]], [{(1, 1)}])
    >>> scores.precision, scores.recall, scores.error_rate
    (1.0, 0.5, 0.25)
    """
    sure, predicted = (
        check_sequences(own, name, empty=True)
        for own, name in ((sure, "sure"), (predicted, "predicted"))
    )
    possible = [()] * len(sure) if possible is None else check_sequences(possible, "possible", True)
    if not len(sure) == len(predicted) == len(possible):
        raise ValueError(
            "sure, predicted and possible must have the same length, got "
            f"{len(sure)}, {len(predicted)} and {len(possible)}"
        )
    counts = np.zeros(4, dtype=np.int64)
    for i, (certain, found, allowed) in enumerate(zip(sure, predicted, possible, strict=True)):
        wanted, links = _pairs(certain, f"sure[{i}]"), _links(found, f"predicted[{i}]")
        counts += [
            len(links),
            len(wanted),
            len(links & wanted),
            len(links & (wanted | _pairs(allowed, f"possible[{i}]"))),
        ]
    return AlignmentScores(*counts.tolist())


def alignment_error_rate(
    sure: Sequence[Iterable[Link]],
    predicted: Sequence[Any],
    possible: Sequence[Iterable[Link]] | None = None,
) -> float:
    """The alignment error rate; see `alignment_scores`.

    >>> alignment_error_rate([{(0, 0), (1, 1)}], [{(0, 0), (1, 1)}])
    0.0
    """
    return alignment_scores(sure, predicted, possible).error_rate


def _pairs(links: Iterable[Any], name: str) -> set[Link]:
    """The links as a set; an error for anything but pairs."""
    try:
        found = {(i, j) for i, j in links}
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a set of pairs (source, target), got {reprlib.repr(links)}"
        ) from None
    return found


def _links(found: Iterable[Any], name: str) -> set[Link]:
    if isinstance(found, (set, frozenset)):
        return _pairs(found, name)
    targets = array_of(found)
    if targets.ndim != 1 or (targets.size and targets.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} must be a set of pairs, or a target for every source word, got "
            f"{reprlib.repr(found)}"
        )
    return {(i, j) for i, j in enumerate(targets.tolist()) if j >= 0}
