"""Inference methods: log Z, marginals, best labellings and samples. Each file is one method."""

from chordal._limits import TimeLimitError, time_limit
from chordal._registry import Registry
from chordal.inference._answers import (
    ByCost,
    Convergence,
    Decoded,
    Marginals,
    Ranked,
    Relaxed,
    Spans,
)
from chordal.inference._base import Inference, Pace, choose, exact_for
from chordal.inference._cliques import most_probable_labels
from chordal.inference._counting import Count, Counted, with_counts
from chordal.inference._sweeps import effective_sample_size, r_hat, sweep

INFERENCE = Registry("chordal.inference", Inference, "inference")

__all__ = [
    "INFERENCE",
    "ByCost",
    "Convergence",
    "Count",
    "Counted",
    "Decoded",
    "Inference",
    "Marginals",
    "Pace",
    "Ranked",
    "Relaxed",
    "Spans",
    "TimeLimitError",
    "choose",
    "effective_sample_size",
    "exact_for",
    "most_probable_labels",
    "r_hat",
    "sweep",
    "time_limit",
    "with_counts",
]
