"""Inference: what potentials say about labels. One file is one method."""

from chordal._registry import Registry
from chordal.inference._base import (
    ByCost,
    Decoded,
    Inference,
    Marginals,
    Ranked,
    Spans,
    most_probable_labels,
)

INFERENCE = Registry("chordal.inference", Inference, "inference")

__all__ = [
    "INFERENCE",
    "ByCost",
    "Decoded",
    "Inference",
    "Marginals",
    "Ranked",
    "Spans",
    "most_probable_labels",
]
