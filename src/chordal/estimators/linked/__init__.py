"""CRFs whose label scores come from outside, such as from a neural network."""

from chordal.estimators.linked._labels import (
    Known,
    check_crf,
    examples_of,
    gold_codes,
    known_labels,
)
from chordal.estimators.linked._links import Linked, check_scores_in, link_places

__all__ = [
    "Known",
    "Linked",
    "check_crf",
    "check_scores_in",
    "examples_of",
    "gold_codes",
    "known_labels",
    "link_places",
]
