"""Labels: from what users have to numbers and targets, and back to the type they gave."""

from chordal.labels._merging import merged_labels, renumbered
from chordal.labels._sequence import SequenceLabels, TargetLabels
from chordal.labels._targets import class_weights, matched_targets, observed, targets_of

__all__ = [
    "SequenceLabels",
    "TargetLabels",
    "class_weights",
    "matched_targets",
    "merged_labels",
    "observed",
    "renumbered",
    "targets_of",
]
