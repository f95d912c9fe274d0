"""The table of precision, recall and F1 per label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chordal._validate import check_number
from chordal.metrics._encode import encode_pair
from chordal.metrics._labels import LabelScores, scores_of, tally


@dataclass(frozen=True)
class ClassificationReport:
    """Scores of each label and their averages; `str` gives scikit-learn's table.

    labels : the labels that count
    scores : their scores, an entry per label in each array
    accuracy : share of correct positions; None if `labels` omits some
    averages : scores by the name of the average
    """

    labels: list[Any]
    scores: LabelScores
    accuracy: float | None
    averages: dict[str, LabelScores]

    def to_dict(self) -> dict[str, Any]:
        """The table as scikit-learn's ``classification_report(output_dict=True)`` gives it."""
        rows: dict[str, Any] = {name: _row(scores) for name, scores in self._rows()}
        if self.accuracy is not None:
            rows["accuracy"] = self.accuracy
        return rows | {f"{name} avg": _row(scores) for name, scores in self.averages.items()}

    def to_text(self, digits: int = 2) -> str:
        """The table with this many digits after the decimal point."""
        rows = self._rows()
        width = max(*(len(name) for name, _ in rows), len("weighted avg"), digits)
        head = "".join(f" {name:>9}" for name in ("precision", "recall", "f1-score", "support"))
        lines = [f"{'':>{width}} {head}", ""]
        lines += [_line(name, scores, width, digits) for name, scores in rows]
        lines.append("")
        total = next(iter(self.averages.values())).support
        if self.accuracy is not None:
            gap = " " * 20
            lines.append(f"{'accuracy':>{width}} {gap} {self.accuracy:>9.{digits}f} {total:>9}")
        for name, scores in self.averages.items():
            lines.append(_line(f"{name} avg", scores, width, digits))
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def _rows(self) -> list[tuple[str, LabelScores]]:
        columns = [column.tolist() for column in self.scores]
        values = [LabelScores(*row) for row in zip(*columns, strict=True)]
        return list(zip(map(str, self.labels), values, strict=True))


def classification_report(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    labels: Sequence[Any] | None = None,
    zero_division: float = 0.0,
) -> ClassificationReport:
    """Precision, recall, F1 and support of every label over all positions, and averages.

    >>> print(classification_report([["a", "b", "b"]], [["a", "b", "a"]]))
                  precision    recall  f1-score   support
    <BLANKLINE>
               a       0.50      1.00      0.67         1
               b       1.00      0.50      0.67         2
    <BLANKLINE>
        accuracy                           0.67         3
       macro avg       0.75      0.75      0.67         3
    weighted avg       0.83      0.67      0.67         3
    <BLANKLINE>
    """
    check_number("zero_division", zero_division)
    pair = encode_pair(y_true, y_pred)
    chosen, correct, true, found = tally(pair, labels)
    everything = set(chosen) >= set(pair.labels)
    accuracy = float(correct.sum() / true.sum()) if everything else None
    names = ["macro", "weighted"] if everything else ["micro", "macro", "weighted"]
    zero = float(zero_division)
    averages = {name: scores_of(correct, true, found, name, 1.0, zero) for name in names}
    scores = scores_of(correct, true, found, None, 1.0, zero)
    return ClassificationReport(chosen, scores, accuracy, averages)


def _row(scores: LabelScores) -> dict[str, Any]:
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "f1-score": scores.fscore,
        "support": scores.support,
    }


def _line(name: str, scores: LabelScores, width: int, digits: int) -> str:
    shares = "".join(f" {share:>9.{digits}f}" for share in scores[:3])
    return f"{name:>{width}} {shares} {scores.support:>9}"
