"""Labels: from user labels to numbers and targets, and back to the original type."""

from chordal.labels._merging import (
    as_kind,
    learned_facts,
    merged_labels,
    renumbered,
    take_learned,
)
from chordal.labels._sequence import SequenceLabels, TargetLabels
from chordal.labels._targets import (
    NothingObservedError,
    class_weights,
    matched_targets,
    observed,
    single_labels,
    targets_of,
)

__all__ = [
    "NothingObservedError",
    "SequenceLabels",
    "TargetLabels",
    "as_kind",
    "class_weights",
    "learned_facts",
    "matched_targets",
    "merged_labels",
    "observed",
    "renumbered",
    "single_labels",
    "take_learned",
    "targets_of",
]
