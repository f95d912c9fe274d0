"""CRFs whose label scores come from outside, such as from a neural network."""

from chordal.estimators._training.judging import check_observed
from chordal.estimators.linked._in_parts import (
    check_relink,
    facts_of_parts,
    linked_parts,
)
from chordal.estimators.linked._labels import (
    Known,
    all_labels,
    check_crf,
    checked_labels,
    examples_of,
    gold_codes,
    known_labels,
    renumbered_labels,
)
from chordal.estimators.linked._links import (
    Linked,
    LinkedExamples,
    Links,
    check_scores_in,
    link_places,
)

__all__ = [
    "Known",
    "Linked",
    "LinkedExamples",
    "Links",
    "all_labels",
    "check_crf",
    "check_observed",
    "check_relink",
    "check_scores_in",
    "checked_labels",
    "examples_of",
    "facts_of_parts",
    "gold_codes",
    "known_labels",
    "link_places",
    "linked_parts",
    "renumbered_labels",
]
