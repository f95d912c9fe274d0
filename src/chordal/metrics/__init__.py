"""Metrics of predicted label sequences.

Every function takes two lists of label sequences, true and predicted. ``chunk_f1_scorer`` and
``<metric>_scorer`` for each metric of `make_sequence_scorer` are scikit-learn scorers; scikit-learn
is imported on first use.
"""

from __future__ import annotations

from chordal.metrics._accuracy import (
    SequenceCounts,
    hamming_accuracy,
    token_accuracy,
    zero_one_accuracy,
)
from chordal.metrics._alignment import AlignmentScores, alignment_error_rate, alignment_scores
from chordal.metrics._bootstrap import (
    BootstrapDifference,
    BootstrapInterval,
    bootstrap,
    paired_bootstrap,
)
from chordal.metrics._chunks import (
    Chunk,
    ChunkScore,
    ChunkScores,
    chunk_f1,
    chunk_precision,
    chunk_recall,
    chunk_scores,
    chunks,
    conlleval_report,
)
from chordal.metrics._labels import (
    Confusion,
    LabelScores,
    confusion_matrix,
    f1_score,
    precision_recall_fscore,
    precision_score,
    recall_score,
)
from chordal.metrics._report import ClassificationReport, classification_report
from chordal.metrics._scorers import METRICS, Scorer, make_sequence_scorer, sequence_counts

__all__ = [
    "METRICS",
    "AlignmentScores",
    "BootstrapDifference",
    "BootstrapInterval",
    "Chunk",
    "ChunkScore",
    "ChunkScores",
    "ClassificationReport",
    "Confusion",
    "LabelScores",
    "Scorer",
    "SequenceCounts",
    "alignment_error_rate",
    "alignment_scores",
    "bootstrap",
    "chunk_f1",
    "chunk_precision",
    "chunk_recall",
    "chunk_scores",
    "chunks",
    "classification_report",
    "confusion_matrix",
    "conlleval_report",
    "f1_score",
    "hamming_accuracy",
    "make_sequence_scorer",
    "paired_bootstrap",
    "precision_recall_fscore",
    "precision_score",
    "recall_score",
    "sequence_counts",
    "token_accuracy",
    "zero_one_accuracy",
]

_SCORERS = {f"{metric}_scorer": metric for metric in METRICS}


def __getattr__(name: str) -> object:
    if name in _SCORERS:
        return make_sequence_scorer(_SCORERS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SCORERS])
